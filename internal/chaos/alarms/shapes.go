package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/tokenctx"
)

// rows is how many rows a holder writes, whose ids begin at 1. Those of the other lease
// begin at othersFrom.
const (
	rows       = 12
	othersFrom = 50
)

// statement is one that a holder sends.
type statement struct {
	shape   string
	sql     string
	args    []any
	isBare  bool // it has no guard: fencerow adds that
	returns bool // it has rows, which only a query shows
}

// forms is how many texts there are of a shape for a table, with a guard and without.
const forms = 12

// builder writes one statement of a table. Its form is chosen apart from its values, so
// that the same texts come again, as those of programs do.
type builder struct {
	form   *rand.Rand
	values *rand.Rand
	table  string
	isBare bool
	args   []any
	token  string // the placeholder of the token, "" if there is none yet
}

// arg adds an argument, and returns its placeholder.
func (b *builder) arg(value any) string {
	b.args = append(b.args, value)
	return "$" + strconv.Itoa(len(b.args))
}

// own returns the placeholder of the holder's token.
func (b *builder) own() string {
	if b.token == "" {
		b.token = b.arg(tokenctx.Arg)
	}
	return b.token
}

func (b *builder) oneOf(texts ...string) string { return texts[b.form.IntN(len(texts))] }

func (b *builder) id() int { return 1 + b.values.IntN(rows) }

// ids returns some ids, in no order, each once.
func (b *builder) ids() []int64 {
	ids := make([]int64, 0, rows)
	for _, i := range b.values.Perm(rows)[:1+b.form.IntN(5)] {
		ids = append(ids, int64(1+i))
	}
	return ids
}

func codeOf(id int) string { return string(rune('a' + id)) }

func codesOf(ids []int64) []string {
	codes := make([]string, len(ids))
	for i, id := range ids {
		codes[i] = codeOf(int(id))
	}
	return codes
}

// set returns the SET of an UPDATE.
func (b *builder) set() string {
	set := ` SET note = 'mine', state = '` + b.oneOf("new", "new", "done") + `'`
	if !b.isBare {
		set += `, last_token = ` + b.own()
	}
	return set
}

// guard returns what a WHERE ends with.
func (b *builder) guard() string {
	state := b.oneOf("", ` AND `+b.table+`.state = 'new'`)
	if b.isBare {
		return state
	}
	return state + ` AND ` + b.table + `.last_token <= ` + b.own()
}

// key returns a condition that names rows by a key.
func (b *builder) key() string {
	id, t := b.id(), b.table
	switch b.form.IntN(18) {
	case 0:
		return t + `.id IN (` + b.arg(id) + `, 98, ` + b.arg(b.id()) + `)`
	case 1:
		return t + `.id = ANY(` + b.arg(b.ids()) + `::bigint[])`
	case 2:
		return t + `.id = ANY(ARRAY[` + b.arg(id) + `::bigint, 98])`
	case 3:
		return t + `.code = ` + b.arg(codeOf(id))
	case 4:
		return t + `.tenant = 1 AND ` + t + `.number = ` + b.arg(id)
	case 5:
		return `(` + t + `.tenant, ` + t + `.number) = (1, ` + b.arg(id) + `)`
	case 6:
		return `(` + t + `.tenant, ` + t + `.number) IN ((1, ` + b.arg(id) + `), (1, ` + b.arg(b.id()) + `))`
	case 7:
		return `(` + t + `.id = ` + b.arg(id) + ` OR ` + t + `.id = ` + b.arg(b.id()) + `)`
	case 8:
		return `(` + t + `.id = ` + b.arg(id) + ` AND ` + t + `.tenant = 1 OR ` + t + `.id = 98)`
	case 9:
		return t + `.id BETWEEN ` + b.arg(id) + ` AND ` + b.arg(id+3)
	case 10:
		return t + `.id = ` + b.arg(id) + `::int + 0`
	case 11:
		return t + `.id IS NOT DISTINCT FROM ` + b.arg(id)
	case 12:
		return t + `.id = CAST(` + b.arg(id) + ` AS bigint)`
	case 13:
		return t + `.id::text = ` + b.arg(strconv.Itoa(id))
	case 14:
		return t + `.code = lower(` + b.arg(strings.ToUpper(codeOf(id))) + `)`
	case 15:
		return t + `.id = ` + b.arg(id) + ` AND EXISTS (SELECT FROM notes)`
	case 16:
		return b.arg(id) + ` = ` + t + `.id`
	}
	return t + `.id = ` + b.arg(id)
}

func (b *builder) update() string {
	return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.key() + b.guard()
}

func (b *builder) returning() string { return ` RETURNING ` + b.table + `.id` }

// shapes are what a holder sends; each returns its text.
var shapes = map[string]func(*builder) string{
	"UPDATE":           (*builder).update,
	"UPDATE RETURNING": func(b *builder) string { return b.update() + b.returning() },
	"UPDATE of many rows": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.tenant = 1` + b.guard()
	},
	"UPDATE by a call": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.number = ` + b.arg(b.id()) + ` AND random() < 2` + b.guard()
	},
	"UPDATE by a condition": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.number = ` + b.arg(b.id()) + b.guard()
	},
	"DELETE": func(b *builder) string { return `DELETE FROM ` + b.table + ` WHERE ` + b.key() + b.guard() },
	"DELETE RETURNING": func(b *builder) string {
		return `DELETE FROM ` + b.table + ` WHERE ` + b.key() + b.guard() + b.returning()
	},
	"DELETE by a subselect": func(b *builder) string {
		return `DELETE FROM ` + b.table + ` WHERE ` + b.table + `.id = (SELECT id FROM ` + b.table + ` WHERE state = 'new' AND number = ` + b.arg(b.id()) + `)` + b.guard()
	},
	"UPDATE FROM": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` FROM (SELECT 1 AS one FROM notes) n WHERE ` + b.key() + b.guard()
	},
	"UPDATE FROM a table": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` FROM notes WHERE ` + b.table + `.number = notes.id AND notes.id >= ` + b.arg(b.id()) + b.guard()
	},
	"UPDATE FROM VALUES": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` FROM (VALUES (` + b.arg(b.id()) + `::bigint), (98)) v(id) WHERE ` + b.table + `.id = v.id` + b.guard()
	},
	"UPDATE FROM unnest": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` FROM unnest(` + b.arg(b.ids()) + `::bigint[]) AS u(id) WHERE ` + b.table + `.id = u.id` + b.guard()
	},
	"UPDATE FROM WITH": func(b *builder) string {
		return `WITH v (id) AS (VALUES (` + b.arg(b.id()) + `::bigint), (98)) UPDATE ` + b.table + b.set() + ` FROM v WHERE ` + b.table + `.id = v.id` + b.guard()
	},
	"DELETE USING": func(b *builder) string {
		return `DELETE FROM ` + b.table + ` USING (SELECT 1 AS one FROM notes) n WHERE ` + b.key() + b.guard()
	},
	"DELETE USING a table": func(b *builder) string {
		return `DELETE FROM ` + b.table + ` USING notes WHERE ` + b.table + `.number = notes.id AND notes.id = ` + b.arg(b.id()) + b.guard()
	},
	"WITH, unused":      func(b *builder) string { return `WITH n AS (SELECT FROM notes) ` + b.update() },
	"WITH, independent": func(b *builder) string { return `WITH w AS (` + b.update() + `) INSERT INTO outbox VALUES (1)` },
	"WITH, dependent": func(b *builder) string {
		return `WITH w AS (` + b.update() + b.returning() + `) INSERT INTO outbox SELECT id FROM w`
	},
	"WITH, a query": func(b *builder) string {
		return `WITH w AS (` + b.update() + b.returning() + `) SELECT count(*) FROM w`
	},
	"WITH, a subselect": func(b *builder) string {
		return `WITH w AS (UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.id IN (SELECT id FROM ` + b.table + ` WHERE state = 'new' AND number = ` + b.arg(b.id()) + `)` + b.guard() + b.returning() + `) INSERT INTO outbox SELECT id FROM w`
	},
	"UNION": func(b *builder) string {
		return `WITH w AS (` + b.update() + b.returning() + `) SELECT id FROM w UNION ALL SELECT 1`
	},
	"EXPLAIN ANALYZE": func(b *builder) string {
		b.isBare = false // fencerow adds no guard to one
		return `EXPLAIN ANALYZE ` + b.update()
	},
	"queue": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.id IN (SELECT id FROM ` + b.table + ` WHERE state = 'new' AND tenant = 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)` + b.guard() + b.returning()
	},
	"queue, empty": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.id IN (SELECT id FROM ` + b.table + ` WHERE state = 'never' LIMIT 1 FOR UPDATE SKIP LOCKED)` + b.guard() + b.returning()
	},
	"queue by WITH": func(b *builder) string {
		return `WITH next AS MATERIALIZED (SELECT id FROM ` + b.table + ` WHERE state = 'new' AND tenant = 1 ORDER BY id LIMIT 2 FOR NO KEY UPDATE SKIP LOCKED) UPDATE ` +
			b.table + b.set() + ` FROM next WHERE ` + b.table + `.id = next.id` + b.guard()
	},
	"no such row": func(b *builder) string {
		return `UPDATE ` + b.table + b.set() + ` WHERE ` + b.table + `.id = ` + b.arg(20+b.id()) + b.guard()
	},
	"MERGE of VALUES":    func(b *builder) string { return b.merge(`(VALUES (` + b.arg(b.id()) + `::bigint), (98)) v(id)`) },
	"MERGE of an array":  func(b *builder) string { return b.merge(`unnest(` + b.arg(b.ids()) + `::bigint[]) AS v(id)`) },
	"MERGE from a table": func(b *builder) string { return b.merge(`(SELECT id FROM notes WHERE id >= ` + b.arg(b.id()) + `) v`) },
	"INSERT": func(b *builder) string {
		return b.insert() + b.lists(b.ids()) + ` ON CONFLICT DO NOTHING`
	},
	"upsert":                      func(b *builder) string { return b.upsert(b.lists([]int64{int64(b.id())})) },
	"upsert of several rows":      func(b *builder) string { return b.upsert(b.lists(b.ids())) },
	"upsert RETURNING":            func(b *builder) string { return b.upsert(b.lists(b.ids())) + b.returning() },
	"upsert of a query":           func(b *builder) string { return b.upsert(b.query()) },
	"upsert of arrays":            func(b *builder) string { return b.upsert(b.arrays()) },
	"upsert from a table":         func(b *builder) string { return b.upsert(b.fromTable()) },
	"upsert from a changed table": func(b *builder) string { return b.upsert(b.fromSelf()) },
	"upsert within WITH": func(b *builder) string {
		return `WITH w AS (` + b.upsert(b.lists(b.ids())) + `) INSERT INTO outbox VALUES (1)`
	},
}

// shapeNames has them in one order, so that a seed chooses the same ones again.
var shapeNames = func() (names []string) {
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// choose returns a random statement of a table.
func choose(random *rand.Rand, table string, isBare bool) statement {
	shape := random.IntN(len(shapeNames))
	form := rand.New(rand.NewPCG(uint64(shape), uint64(random.IntN(forms))))
	b := &builder{form: form, values: random, table: table, isBare: isBare}
	name := shapeNames[shape]
	text := shapes[name](b)
	return statement{shape: name, sql: text, args: b.args, isBare: b.isBare, returns: strings.Contains(text, "RETURNING") || strings.Contains(text, "SELECT count")}
}
