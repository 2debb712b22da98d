package compat

import (
	"context"
	"errors"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"
)

func entKey(id int) *sqlgraph.FieldSpec {
	key := sqlgraph.NewFieldSpec("id", field.TypeInt)
	if id > 0 {
		key.Value = id
	}
	return key
}

// entTx is the driver of a transaction, as in generated code.
type entTx struct {
	dialect.ExecQuerier
	dialect.Driver
}

func (tx entTx) Exec(ctx context.Context, query string, args, v any) error {
	return tx.ExecQuerier.Exec(ctx, query, args, v)
}

func (tx entTx) Query(ctx context.Context, query string, args, v any) error {
	return tx.ExecQuerier.Query(ctx, query, args, v)
}

func (tx entTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(tx), nil }

// entOps are what the code that ent generates calls.
func entOps(_ *testing.T, e *env) []op {
	drv := entsql.OpenDB(dialect.Postgres, e.db)
	mine := rows{"o1": "mine 8"}
	create := func(id int, more ...entsql.ConflictOption) *sqlgraph.CreateSpec {
		spec := sqlgraph.NewCreateSpec("orders", sqlgraph.NewFieldSpec("id", field.TypeInt))
		spec.ID.Value = nil
		if id > 0 {
			spec.ID.Value = id
		}
		spec.SetField("status", field.TypeString, "mine")
		spec.SetField("last_token", field.TypeInt64, int64(forged))
		spec.OnConflict = more
		return spec
	}
	updateOne := func(ctx context.Context, drv dialect.Driver, id int) error {
		spec := sqlgraph.NewUpdateSpec("orders", []string{"id", "status"}, entKey(id))
		spec.ScanValues = func(columns []string) ([]any, error) {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			return values, nil
		}
		spec.Assign = func([]string, []any) error { return nil }
		spec.SetField("status", field.TypeString, "mine")
		return sqlgraph.UpdateNode(ctx, drv, spec)
	}
	where := func(p *entsql.Predicate) func(*entsql.Selector) { return func(s *entsql.Selector) { s.Where(p) } }
	updateMany := func(ctx context.Context, p *entsql.Predicate) (int64, error) {
		spec := sqlgraph.NewUpdateSpec("orders", []string{"id"}, entKey(0))
		spec.Predicate = where(p)
		spec.SetField("status", field.TypeString, "mine")
		n, err := sqlgraph.UpdateNodes(ctx, drv, spec)
		return int64(n), err
	}
	steps := func(name string, changes rows, do func(context.Context) error) op {
		return op{name: name, changes: changes, affected: untold, do: func(ctx context.Context) (int64, error) { return untold, do(ctx) }}
	}
	return []op{
		steps("create", rows{"o4": "mine 8"}, func(ctx context.Context) error { return sqlgraph.CreateNode(ctx, drv, create(0)) }).of(func(o *op) { o.kind = inserts }),
		steps("create, bulk", rows{"o4": "mine 8", "o5": "mine 8"}, func(ctx context.Context) error {
			return sqlgraph.BatchCreate(ctx, drv, &sqlgraph.BatchCreateSpec{Nodes: []*sqlgraph.CreateSpec{create(0), create(0)}})
		}).of(func(o *op) { o.kind = inserts }),
		steps("update", mine, func(ctx context.Context) error { return updateOne(ctx, drv, 1) }),
		steps("update, no such row", nil, func(ctx context.Context) error {
			err := updateOne(ctx, drv, 77)
			if notFound := new(sqlgraph.NotFoundError); errors.As(err, &notFound) {
				return nil
			}
			return err
		}).of(func(o *op) { o.kind = inserts }),
		op{name: "update, many", do: func(ctx context.Context) (int64, error) { return updateMany(ctx, entsql.LT("id", 3)) }}.overTwo(),
		steps("upsert", mine, func(ctx context.Context) error {
			return sqlgraph.CreateNode(ctx, drv, create(1, entsql.ConflictColumns("id"), entsql.ResolveWithNewValues()))
		}),
		{name: "delete", changes: rows{"o2": ""}, affected: 1, meets: []string{"o2"}, do: func(ctx context.Context) (int64, error) {
			spec := sqlgraph.NewDeleteSpec("orders", entKey(0))
			spec.Predicate = where(entsql.EQ("id", 2))
			n, err := sqlgraph.DeleteNodes(ctx, drv, spec)
			return int64(n), err
		}},
		steps("transaction", rows{"o1": "mine 8", "o2": "mine 8"}, func(ctx context.Context) error {
			tx, err := drv.Tx(ctx)
			if err != nil {
				return err
			}
			inside := entTx{tx, drv}
			if err := errors.Join(updateOne(ctx, inside, 2), updateOne(ctx, inside, 1)); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		}),
	}
}
