package migrations

import (
	"context"
	"fmt"
	"strings"
)

// AllowFunction has the driver let a function or procedure through although it
// takes it for one that writes protected tables: the function is known to write
// none, or to carry a guard of its own. The function is written as in SQL, with the
// types of its arguments: "public.run(text)". Its overloads are not allowed with it.
//
// It is allowed as long as its definition stays as it is. One that was replaced,
// renamed, moved to another schema, or dropped and made with another definition is
// refused again, and a finding of [Doctor]; call AllowFunction again once you have
// read it. reason must say why it may be called. Who allowed what, when and why is
// kept in fencing.allowed_function. Running handles take it up as they do
// a change of the registry.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (functions of
// the system and of schema fencing, temporary functions, aggregates) come with its
// hint and unwrap to [*pgconn.PgError].
func AllowFunction(ctx context.Context, dsn, function, reason string) error {
	const op = "allow"
	if err := checkFunctionName(op, function); err != nil {
		return err
	}
	if strings.TrimSpace(reason) == "" {
		return fmt.Errorf("%s %s: no reason given: say why it may be called; it is kept in fencing.allowed_function", op, function)
	}
	return callOnFunction(ctx, dsn, op, function, "correct the name, and write it with its schema and the types of its arguments",
		`SELECT fencing.allow_function($1::pg_catalog.oid::pg_catalog.regprocedure, $2::pg_catalog.text)`, reason)
}

// DisallowFunction ends what [AllowFunction] did. A function that isn't allowed
// stays so.
//
// Without [Up] the error is [ErrNotInstalled].
func DisallowFunction(ctx context.Context, dsn, function string) error {
	const op = "disallow"
	if err := checkFunctionName(op, function); err != nil {
		return err
	}
	return callOnFunction(ctx, dsn, op, function, "correct the name, and write it with its schema and the types of its arguments; if the function is gone, delete its row from fencing.allowed_function",
		`SELECT fencing.disallow_function($1::pg_catalog.oid::pg_catalog.regprocedure)`)
}

// checkFunctionName keeps out what PostgreSQL takes for an oid, or wouldn't tell
// overloads apart by.
func checkFunctionName(op, function string) error {
	if name, _, ok := strings.Cut(function, "("); !ok || strings.TrimSpace(name) == "" {
		return fmt.Errorf(`%s %s: the types of the arguments are missing: write the function as in SQL, "public.run(text)" or "public.run()"`, op, function)
	}
	return nil
}

// functionRights are what the functions that write fencing.allowed_function need.
const functionRights = "own schema fencing, or be granted USAGE on schema fencing, SELECT, INSERT, UPDATE, DELETE on fencing.allowed_function and EXECUTE on the functions of schema fencing"

// callOnFunction calls a function of schema fencing on another one, whose oid is
// its first argument. missing is what to do if there is no such function.
func callOnFunction(ctx context.Context, dsn, op, function, missing, sql string, args ...any) error {
	op += " " + function
	conn, err := connect(ctx, op, dsn)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	if err := requireInstalled(ctx, conn, op); err != nil {
		return err
	}
	var found *uint32
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.to_regprocedure($1::pg_catalog.text)::pg_catalog.oid`, function).Scan(&found); err != nil {
		return opError(op, functionRights, err)
	}
	if found == nil {
		return fmt.Errorf("%s: there is no such function: %s", op, missing)
	}
	_, err = conn.Exec(ctx, sql, append([]any{*found}, args...)...)
	switch {
	case isState(err, undefinedFunction):
		return functionMissing(op, err)
	case err != nil:
		return opError(op, functionRights, err)
	}
	return nil
}
