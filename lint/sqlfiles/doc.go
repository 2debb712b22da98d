// Package sqlfiles checks files of SQL as the driver would check their
// statements, without running them:
//
//	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
//	...
//	result, err := sqlfiles.Lint(ctx, sqlfiles.Config{Policy: policy}, "db")
//	for _, f := range result.Findings {
//		fmt.Println(f)
//	}
//
// A file is split by PostgreSQL's own lexer, so that strings, dollar quotes,
// comments and BEGIN ATOMIC bodies hold no ends of statements.
//
// # Files of queries
//
// What is in no migration is taken for queries that a program sends through
// fencerow, and each rule of package rewrite counts. sqlc's @name, sqlc.arg(),
// sqlc.narg(), sqlc.slice() and sqlc.embed() are understood, ? as a
// placeholder, and psql's :name; messages show them as they are written. A file
// that doesn't lex, and a statement that doesn't parse, are findings.
//
// # Migrations
//
// These run over a plain connection, where a change of structure is what they
// are for, and the wall judges what they write. So only writes that the wall
// would refuse are findings, and statements that don't parse and name a
// protected table; others are counted in [Result.Unparsed]. A DELETE needs the
// token in its setting, by a SET LOCAL or set_config before it. A file is a migration if goose's annotations or
// golang-migrate's name say so, if [Config.Migrations] does, if only psql can
// run it (meta-commands, COPY with its data), or if it has statements that
// change the structure and no query of sqlc's.
//
// # Suppressions
//
//	-- fencerow:ignore FR101 runs once, before the wall is put up
//	UPDATE orders SET archived = true WHERE created_at < '2020-01-01';
//
// on the line before a statement, or at the end of one of its lines, hides its
// findings by that rule, or rules, separated by commas. One without a reason,
// of a rule that there isn't, or that hides nothing, is a finding itself
// (FR911).
//
// # What it does not see
//
// The tables are known by their names alone: no view, partition, trigger or
// foreign key, which the driver reads from the catalog. A bare name stands for
// every protected table of that name, in whatever schema.
package sqlfiles
