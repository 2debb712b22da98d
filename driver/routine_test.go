package driver

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

func TestDynamicRoutine(t *testing.T) {
	for body, want := range map[string]bool{
		`execute x`: true, `for r in execute x loop`: true, `return query execute x`: true, `create or replace trigger t before update on b`: true,
		`drop rule r on b`: true, `perform query_to_xml(x, true, true, '')`: true,
		`create trigger t before update on b for each row execute function f()`: true,
		`grant execute on function f() to app`:                                  false, `select tg_name, trigger from t`: false, `-- execute x`: false, `select executes from t`: false,
	} {
		require.Equal(t, want, readRoutine("plpgsql", body).dynamic, body)
	}
	require.True(t, readRoutine("plpython3u", "").dynamic)
	require.False(t, readRoutine("internal", "f(").dynamic)
}
