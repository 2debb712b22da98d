package driver_test

import "strings"

// toldShape is a form of a protected write. {W} of its text is the part of the WHERE that
// names the row, and {<=} the guard's operator; $1 is the token, and the arguments after
// it are those of the row.
type toldShape struct {
	sql     string
	args    func(id int) []any
	inserts bool // the row is inserted where there is none
	deletes bool
	open    bool // nothing in the statement tells which row it meant
	strict  bool // a replay can be told, too
	queries bool // it has rows, which only a query shows
}

func byID(id int) []any { return []any{id} }

func letters(id int) string { return string(rune('a' + id%26)) }

// toldKeys are the ways to name a row by one of its keys.
var toldKeys = map[string]struct {
	where string
	args  func(id int) []any
}{
	"primary key":         {`orders.id = $2`, byID},
	"literal and key":     {`orders.id = $2 AND 1 = 1`, byID},
	"turned round":        {`$2 = orders.id`, byID},
	"list":                {`orders.id IN ($2, 98)`, byID},
	"array":               {`orders.id = ANY($2::bigint[])`, func(id int) []any { return []any{[]int64{int64(id)}} }},
	"array of literals":   {`orders.id = ANY(ARRAY[$2::bigint, 98])`, byID},
	"unique column":       {`orders.code = $2`, func(id int) []any { return []any{letters(id)} }},
	"unique pair":         {`orders.tenant = 1 AND orders.number = $2`, byID},
	"row":                 {`(orders.tenant, orders.number) = (1, $2)`, byID},
	"list of rows":        {`(orders.tenant, orders.number) IN ((1, $2), (1, 98))`, byID},
	"alternatives":        {`(orders.id = $2 OR orders.id = 98)`, byID},
	"mixed alternatives":  {`(orders.id = $2 AND orders.tenant = 1 OR orders.id = 98)`, byID},
	"between":             {`orders.id BETWEEN $2 AND $2`, byID},
	"arithmetic":          {`orders.id = $2::int + 0`, byID},
	"not distinct":        {`orders.id IS NOT DISTINCT FROM $2`, byID},
	"cast":                {`orders.id = CAST($2 AS bigint)`, byID},
	"cast column":         {`orders.id::text = $2`, func(id int) []any { return []any{strings.Repeat("7", 0) + itoa(id)} }},
	"call of constants":   {`orders.code = lower($2)`, func(id int) []any { return []any{strings.ToUpper(letters(id))} }},
	"key and a subselect": {`orders.id = $2 AND EXISTS (SELECT FROM notes)`, byID},
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + string(rune('0'+n%10))
	}
	return string(rune('0' + n))
}

const (
	toldSet    = `SET note = 'mine', last_token = $1`
	toldGuard  = `AND orders.state = 'new' AND orders.last_token {<=} $1`
	toldUpdate = `UPDATE orders ` + toldSet + ` WHERE {W} ` + toldGuard
	toldAction = ` DO UPDATE SET note = 'mine', last_token = $1 WHERE orders.last_token {<=} $1`
)

// toldVerbs are the statements that name their row by a key.
var toldVerbs = map[string]toldShape{
	"UPDATE":            {sql: toldUpdate, strict: true},
	"UPDATE RETURNING":  {sql: toldUpdate + ` RETURNING orders.id`, strict: true, queries: true},
	"DELETE":            {sql: `DELETE FROM orders WHERE {W} ` + toldGuard, deletes: true, strict: true},
	"UPDATE FROM":       {sql: `UPDATE orders ` + toldSet + ` FROM (SELECT 1 AS one FROM notes) n WHERE {W} ` + toldGuard, strict: true},
	"DELETE USING":      {sql: `DELETE FROM orders USING (SELECT 1 AS one FROM notes) n WHERE {W} ` + toldGuard, deletes: true, strict: true},
	"unused WITH":       {sql: `WITH n AS (SELECT FROM notes) ` + toldUpdate, strict: true},
	"WITH, independent": {sql: `WITH w AS (` + toldUpdate + `) INSERT INTO outbox VALUES (1)`, strict: true},
	"WITH, dependent":   {sql: `WITH w AS (` + toldUpdate + ` RETURNING orders.id) INSERT INTO outbox SELECT id FROM w`, strict: true},
	"WITH, a query":     {sql: `WITH w AS (` + toldUpdate + ` RETURNING orders.id) SELECT count(*) FROM w`, strict: true, queries: true},
}

// toldOthers are statements of their own kinds.
var toldOthers = map[string]toldShape{
	"upsert by key":               {sql: `INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT (id)` + toldAction, args: idAndCode, inserts: true, strict: true},
	"upsert by unique column":     {sql: `INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT (code)` + toldAction, args: idAndCode, inserts: true, strict: true},
	"upsert by expression":        {sql: `INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT (lower(code))` + toldAction, args: idAndCode, inserts: true},
	"upsert by partial index":     {sql: `INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT (code, number) WHERE tenant = 1` + toldAction, args: idAndCode, inserts: true},
	"upsert by constraint":        {sql: `INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT ON CONSTRAINT orders_code_key` + toldAction, args: idAndCode, inserts: true},
	"upsert RETURNING":            {sql: `INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT (id)` + toldAction + ` RETURNING id`, args: idAndCode, inserts: true, strict: true, queries: true},
	"upsert of a query":           {sql: `INSERT INTO orders (id, code, number, last_token) SELECT $2::bigint, $3::text, $2::bigint, $1::bigint ON CONFLICT (id)` + toldAction, args: idAndCode, inserts: true, strict: true},
	"upsert of arrays":            {sql: `INSERT INTO orders (id, code, number, last_token) SELECT u.id, u.code, u.id, $1::bigint FROM unnest($2::bigint[], $3::text[]) AS u(id, code) ON CONFLICT (id)` + toldAction, args: idsAndCodes, inserts: true, strict: true},
	"upsert of arrays, listed":    {sql: `INSERT INTO orders (id, code, number, last_token) SELECT unnest($2::bigint[]), unnest($3::text[]), unnest($2::bigint[]), $1::bigint ON CONFLICT (id)` + toldAction, args: idsAndCodes, inserts: true, strict: true},
	"upsert within WITH":          {sql: `WITH w AS (INSERT INTO orders (id, code, number, last_token) VALUES ($2, $3, $2, $1) ON CONFLICT (id)` + toldAction + `) INSERT INTO outbox VALUES (1)`, args: idAndCode, inserts: true, strict: true},
	"UPDATE FROM VALUES":          {sql: `UPDATE orders ` + toldSet + ` FROM (VALUES ($2::bigint), (98)) v(id) WHERE orders.id = v.id ` + toldGuard, args: byID, strict: true},
	"UPDATE FROM unnest":          {sql: `UPDATE orders ` + toldSet + ` FROM (SELECT unnest($2::bigint[]) AS id) u WHERE orders.id = u.id ` + toldGuard, args: ids, strict: true},
	"UPDATE FROM a call":          {sql: `UPDATE orders ` + toldSet + ` FROM unnest($2::bigint[]) AS u(id) WHERE orders.id = u.id ` + toldGuard, args: ids, strict: true},
	"UPDATE FROM WITH of VALUES":  {sql: `WITH v (id) AS (VALUES ($2::bigint), (98)) UPDATE orders ` + toldSet + ` FROM v WHERE orders.id = v.id ` + toldGuard, args: byID, strict: true},
	"MERGE of VALUES":             {sql: `MERGE INTO orders USING (VALUES ($2::bigint), (98)) v(id) ON orders.id = v.id WHEN MATCHED AND orders.state = 'new' AND orders.last_token {<=} $1 THEN UPDATE ` + toldSet, args: byID, strict: true},
	"UNION":                       {sql: `WITH w AS (` + byKey(toldUpdate) + ` RETURNING orders.id) SELECT id FROM w UNION ALL SELECT 1`, args: byID, queries: true},
	"EXPLAIN ANALYZE":             {sql: `EXPLAIN ANALYZE ` + byKey(toldUpdate), args: byID},
	"CREATE TABLE AS":             {sql: `CREATE TABLE made AS WITH w AS (` + byKey(toldUpdate) + ` RETURNING orders.id) SELECT id FROM w`, args: byID},
	"SELECT INTO":                 {sql: `WITH w AS (` + byKey(toldUpdate) + ` RETURNING orders.id) SELECT id INTO made FROM w`, args: byID},
	"by a condition":              {sql: `UPDATE orders ` + toldSet + ` WHERE orders.number = $2 ` + toldGuard, args: byID, open: true},
	"by a subselect":              {sql: `UPDATE orders ` + toldSet + ` WHERE orders.id IN (SELECT id FROM orders WHERE state = 'new' AND number = $2 LIMIT 1 FOR UPDATE SKIP LOCKED) AND orders.last_token {<=} $1`, args: byID, open: true},
	"by a table in FROM":          {sql: `UPDATE orders ` + toldSet + ` FROM notes WHERE orders.number = notes.id AND notes.id = $2 ` + toldGuard, args: byID, open: true},
	"by a volatile call":          {sql: `UPDATE orders ` + toldSet + ` WHERE orders.number = $2 AND random() < 2 ` + toldGuard, args: byID, open: true},
	"MERGE from a table":          {sql: `MERGE INTO orders USING (SELECT id FROM notes WHERE id = $2) n ON orders.id = n.id WHEN MATCHED AND orders.state = 'new' AND orders.last_token {<=} $1 THEN UPDATE ` + toldSet, args: byID, open: true},
	"DELETE by a subselect":       {sql: `DELETE FROM orders WHERE orders.id = (SELECT id FROM orders WHERE state = 'new' AND number = $2) AND orders.last_token {<=} $1`, args: byID, open: true, deletes: true},
	"by a subselect, within WITH": {sql: `WITH w AS (UPDATE orders ` + toldSet + ` WHERE orders.id IN (SELECT id FROM orders WHERE state = 'new' AND number = $2) AND orders.last_token {<=} $1 RETURNING orders.id) INSERT INTO outbox SELECT id FROM w`, args: byID, open: true},
}

func byKey(text string) string { return strings.ReplaceAll(text, "{W}", "orders.id = $2") }

func idAndCode(id int) []any { return []any{id, letters(id)} }

func ids(id int) []any { return []any{[]int64{int64(id)}} }

func idsAndCodes(id int) []any { return []any{[]int64{int64(id)}, []string{letters(id)}} }

// toldShapes are all of them, by name.
func toldShapes() map[string]toldShape {
	shapes := make(map[string]toldShape)
	for name, shape := range toldOthers {
		shapes[name] = shape
	}
	for verb, shape := range toldVerbs {
		for key, by := range toldKeys {
			shape := shape
			shape.sql, shape.args = strings.ReplaceAll(shape.sql, "{W}", by.where), by.args
			shapes[verb+" by "+key] = shape
		}
	}
	return shapes
}
