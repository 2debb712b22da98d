package main

import "strings"

// insert returns the head of an INSERT.
func (b *builder) insert() string {
	columns := ` (id, code, number`
	if !b.isBare {
		columns += `, last_token`
	}
	return `INSERT INTO ` + b.table + columns + `)`
}

// last returns the token as the last value of a row.
func (b *builder) last() string {
	if b.isBare {
		return ""
	}
	return `, ` + b.own() + `::bigint`
}

// lists returns a row for each id.
func (b *builder) lists(ids []int64) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		number := b.arg(id)
		all[i] = `(` + number + `::bigint, ` + b.arg(codeOf(int(id))) + `, ` + number + `::bigint` + b.last() + `)`
	}
	return ` VALUES ` + strings.Join(all, ", ")
}

// query returns a row by a SELECT without FROM.
func (b *builder) query() string {
	id := b.id()
	number := b.arg(id)
	return ` SELECT ` + number + `::bigint, ` + b.arg(codeOf(id)) + `::text, ` + number + `::bigint` + b.last()
}

// arrays returns rows by arrays.
func (b *builder) arrays() string {
	ids := b.ids()
	return ` SELECT u.id, u.code, u.id` + b.last() + ` FROM unnest(` + b.arg(ids) + `::bigint[], ` + b.arg(codesOf(ids)) + `::text[]) AS u(id, code)`
}

// fromTable returns rows of another table.
func (b *builder) fromTable() string {
	return ` SELECT n.id, chr(97 + n.id::int), n.id` + b.last() + ` FROM notes n WHERE n.id <= ` + b.arg(b.id())
}

// fromSelf returns rows of the table itself, which others change at the same time.
func (b *builder) fromSelf() string {
	return ` SELECT o.id, o.code, o.number` + b.last() + ` FROM ` + b.table + ` o WHERE o.tenant = 1 AND o.id <= ` + b.arg(b.id())
}

// upsert returns an upsert of a source.
func (b *builder) upsert(source string) string {
	target := b.oneOf(`(id)`, `(id)`, `(code)`, `(lower(code))`, `(code, number) WHERE tenant = 1`, `(tenant, number)`)
	text := b.insert() + source + ` ON CONFLICT ` + target + ` DO UPDATE SET note = 'mine', state = 'new'`
	if b.isBare {
		return text
	}
	token := b.oneOf(b.own(), `EXCLUDED.last_token`)
	return text + `, last_token = ` + token + ` WHERE ` + b.table + `.last_token <= ` + token
}

// merge returns a MERGE of a source v(id). fencerow adds no guard to one.
func (b *builder) merge(source string) string {
	b.isBare = false
	return `MERGE INTO ` + b.table + ` USING ` + source + ` ON ` + b.table + `.id = v.id WHEN MATCHED` + b.guard() + ` THEN UPDATE` + b.set()
}
