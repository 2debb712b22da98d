package reach

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a body writes is found behind whatever stands around it.
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
		`execute E'delete\nfrom\t\x62\u0062\142'`:                                                     {"DELETE .bbb"},
		`execute 'update b set x = 1, ' || y`:                                                         {"UPDATE .b"},
		`refresh materialized view concurrently a.b`:                                                  {"REFRESH a.b"},
		`x := $q$ it's " $q$; delete from b`:                                                          {"DELETE .b"},
		`execute 'delete from "b" where id = ' || $1`:                                                 {"DELETE .b"},
		`execute 'update b set ' || c || ' = 1'`:                                                      {"UPDATE .b"},
		`execute $q$ do $r$ begin delete from b; end $r$ $q$`:                                         {"DELETE .b"},
		"execute 'delete fr' -- a comment\n\t-- another 'one'\n'om b'":                                {"DELETE .b"},
		"execute E'delete \\x66r'\r\n'om\\040b'":                                                      {"DELETE .b"},
		"execute U&'delete !0066r'\n'om !0062' uescape '!'":                                           {"DELETE .b"},
		"execute 'execute ''delete fr''\n''om b'' '":                                                  {"DELETE .b"},
		"execute 'delete from b' 'c'":                                                                 {"DELETE .b"},
		"execute 'delete from b' /* no\n comment */ 'c'":                                              {"DELETE .b"},
		`create temp table a.b as select 1; create or replace recursive view c (x) as select 1; create table if not exists d partition of e default`: {"CREATE a.b", "CREATE .c", "CREATE .d"},
		`create materialized view if not exists b as select 1; create foreign table c () server s; create unlogged table d ()`:                       {"CREATE .b", "CREATE .c", "CREATE .d"},
		`create table b.c (); create index c on b (x); create type b as (x int); create function b() returns int as ''`:                              {"CREATE b.c"},
		`select * into temp b from c; alter table c rename to b; alter table c rename d to b; alter view a.b set schema d`:                           {"CREATE .b", " .c", "CREATE .b", " .c", "CREATE a.b"},
		`drop schema if exists a, b cascade; drop schema c; drop owned by d`:                                                                         {"CREATE a.", "CREATE b.", "CREATE ."},
		`import foreign schema a from server s into b; alter schema a rename to b`:                                                                   {"CREATE .", "CREATE a.", "CREATE b.", "CREATE .b"},
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

func TestDynamicRoutine(t *testing.T) {
	for body, want := range map[string]bool{
		`execute x`: true, `for r in execute x loop`: true, `return query execute x`: true, `create or replace trigger t before update on b`: true,
		`drop rule r on b`: true, `perform query_to_xml(x, true, true, '')`: true,
		`create trigger t before update on b for each row execute function f()`: true,
		`grant execute on function f() to app`:                                  false, `select tg_name, trigger from t`: false, `grant select, execute on function f() to app; execute on`: true, `begin execute function; end`: true, `return query execute procedure`: true, `-- execute x`: false, `select executes from t`: false,
	} {
		require.Equal(t, want, readRoutine("plpgsql", body).dynamic, body)
	}
	require.True(t, readRoutine("plpython3u", "").dynamic)
	require.False(t, readRoutine("internal", "f(").dynamic)
}
