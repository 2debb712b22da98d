package reach

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a body makes is told from what leads nowhere.
func TestRoutineMakes(t *testing.T) {
	for body, want := range map[string]bool{
		`create or replace temp view v as select 1`: true, `create function f() returns int language sql as ''`: true, `create constraint trigger t after insert on a execute function f()`: true,
		`create operator + (function = f)`: true, `create aggregate a (int) (sfunc = f)`: true, `create cast (a as b) with function f(a)`: true, `create domain d as int`: true, `create rule r as on insert to a do nothing`: true, `create policy p on a`: true,
		`alter view v rename to w`: true, `alter table a rename to b`: true, `alter function f() set schema s`: true, `alter routine f() rename to g`: true, `alter schema s rename to t`: true, `alter table a add b int`: true,
		`drop function f()`: true, `drop schema s cascade`: true, `drop trigger t on a`: true, `drop owned by x`: true, `import foreign schema s from server x into t`: true,
		`create table a (i int default f())`: true, `create temp table a (like b)`: true, `create table a partition of b default`: true, `create table a () inherits (b)`: true, `create table a (i int generated always as (f(j)) stored)`: true,

		`create temp table a (i int primary key, t text not null) on commit drop`: false, `create temp table if not exists a as select * from b where c like 'x'`: false, `create unlogged table a (i int)`: false,
		`select * into temp a from b`: false, `drop table if exists a`: false, `drop index i`: false, `create index on a (i)`: false, `create sequence s`: false, `truncate a`: false, `raise notice 'create it'`: false, `insert into a values ('drop')`: false, `select create_order(1)`: false,

		`execute x`: true, `execute 'select ' || x`: true, `execute format('select %s', x)`: true, `execute format('insert into %I select 1' || x, t)`: true, `execute format('select %I()', f)`: true, `execute format('select %I.%I(1)', s, f)`: true,
		`execute 'select ' || quote_ident(f) || '()'`: true, `execute format(x, y)`: true, `execute format('insert into %I values (1)', t) || y`: true, `execute concat('a', x)`: true, `execute 'create view v as select 1'`: true, `execute format('create view %I as select 1', v)`: true,
		`for r in execute x loop`: true, `return query execute x using y`: true, `execute 'do $d$ begin execute x; end $d$'`: true,
		`execute 'select 1'`: false, `execute format('insert into %I (a, b) values (%L, $1)', t, x) using y`: false, `execute format('update %1$I.%2$I set x = %3$L', s, t, x) into z`: false, `execute format('insert into %I.%I (a) values (1)', s, t)`: false,
		`execute 'delete from ' || quote_ident(t) || ' where x = ' || quote_literal(y)`: false, `return query execute 'select * from a' using y`: false, `for r in execute format('select * from %I', t) loop`: false,
		`execute 'insert into ' || tg_table_name || '_log values ($1)' using new.id`: false, `grant execute on function f() to x`: false, `execute function f()`: true, `for r in execute function loop`: true,
	} {
		require.Equal(t, want, readRoutine("plpgsql", body+";").makes, body)
	}
	require.True(t, readRoutine("plpython3u", "").makes)
	require.False(t, readRoutine("internal", "f(").makes)
}
