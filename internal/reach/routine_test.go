package reach

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a body writes is found behind whatever stands around it. A string is code where
// EXECUTE runs it.
func TestReadRoutine(t *testing.T) {
	for body, want := range map[string][]string{
		`update only a.b as c set (x, y) = (1, 2), z[1] = f(q) where u = 1`: {"UPDATE a.b x,y,z"},
		`update b set note = 'from x; where', id = 5`:                       {"UPDATE .b note,id"},
		`insert into "order items" values (1)`:                              {"INSERT .order items"},
		`insert /* /* nested */ into */ into -- "
			b values (1) on conflict (id) do update set x = 1`: {"INSERT .b", "UPDATE .b"},
		`with x as (delete from only b returning *) select * from x`:                                  {"DELETE .b"},
		`merge into b using c on true when matched then delete`:                                       {"INSERT .b", "UPDATE .b", "DELETE .b"},
		`truncate table a, s.b *, only c cascade`:                                                     {"TRUNCATE .a", "TRUNCATE s.b", "TRUNCATE .c"},
		`alter table if exists only b disable trigger all; drop table if exists c, d`:                 {" .b", " .c", " .d"},
		`copy b (id) from '/x'; copy c to '/y'`:                                                       {"INSERT .b"},
		`raise notice 'it''s "'; delete from b`:                                                       {"DELETE .b"},
		`x := e'it\'s "'; delete from b`:                                                              {"DELETE .b"},
		`x := 'it\'; delete from b`:                                                                   {"DELETE .b"},
		`x := E'a\\'; delete from b`:                                                                  {"DELETE .b"},
		`update b set x = y is distinct from 1, "Z z" = 2 from c`:                                     {"UPDATE .b x,z z"},
		`update b set x = e'\'', y = n is not distinct from u&'\0027', z = 1 where u = 1`:             {"UPDATE .b x,y,z"},
		`insert into b values ('a;b') on conflict (id) do update set x = 1`:                           {"INSERT .b", "UPDATE .b"},
		`update U&"d\0061t\+000061" set x = 1; delete from u&"!0062" uescape '!'; delete from u&"\\"`: {"UPDATE .data x", "DELETE .b", `DELETE .\`},
		`refresh materialized view concurrently a.b`:                                                  {"REFRESH a.b"},
		`x := 'update c set v = 1'; execute 'update b set v = $1' using x`:                            {"UPDATE .b v"},
		`x := $q$ it's " $q$; delete from b`:                                                          {"DELETE .b"},
		`create temp table a.b as select 1; create or replace recursive view c (x) as select 1; create table if not exists d partition of e default`: {"CREATE a.b", "CREATE .c", "CREATE .d"},
		`create materialized view if not exists b as select 1; create foreign table c () server s; create unlogged table d ()`:                       {"CREATE .b", "CREATE .c", "CREATE .d"},
		`create table b.c (); create index c on b (x); create type b as (x int); create function b() returns int as ''`:                              {"CREATE b.c"},
		`select * into temp b from c; alter table c rename to b; drop table a, b`:                                                                    {" .c", " .a", " .b"},
		`truncate only (a), only b, c; copy binary d from '/x'`:                                                                                      {"TRUNCATE .a", "TRUNCATE .b", "TRUNCATE .c", "INSERT .d"},
		`select 1 from b for update of b nowait; if tg_op = 'update' then x := 1; end if; -- update b set x = 1
			create index on b (id); copy b to stdout`: nil,
	} {
		var got []string
		for _, target := range readRoutine("plpgsql", body).targets {
			s := target.event + " " + target.Schema + "." + target.Name.Name
			for i, c := range target.columns {
				s += map[bool]string{true: " ", false: ","}[i == 0] + c
			}
			got = append(got, s)
		}
		require.Equal(t, want, got, body)
	}
}

// In SQL, INTO makes a table; in PL/pgSQL it sets a variable.
func TestSelectIntoRoutine(t *testing.T) {
	for language, want := range map[string]int{"sql": 1, "plpgsql": 0} {
		require.Len(t, readRoutine(language, `select a, b into c from d`).targets, want, language)
	}
}
