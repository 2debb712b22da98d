package driver

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"

	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// BenchmarkExec is the cost in the process, against a driver that does nothing:
// through the connector alone, and through fencerow.
func BenchmarkExec(b *testing.B) {
	quiet := &fake{count: 1, quiet: true}
	fenced, err := Wrap(quiet, Protect("orders", rewrite.Strict), WithRewrite())
	if err != nil {
		b.Fatal(err)
	}
	statements := map[string]struct {
		sql  string
		args []any
	}{
		"unprotected": {`UPDATE notes SET body = $1, kind = $2 WHERE id = $3`, []any{"paid", int64(7), int64(17)}},
		"guarded":     {guarded, []any{"paid", int64(7), int64(17)}},
		"rewritten":   {`UPDATE orders SET status = $1 WHERE id = $2`, []any{"paid", int64(17)}},
	}
	for name, connector := range map[string]sqldriver.Connector{"raw": quiet, "fencerow": fenced} {
		db := sql.OpenDB(connector)
		for kind, statement := range statements {
			b.Run(name+"/"+kind, func(b *testing.B) {
				ctx := tokenctx.With(b.Context(), 7)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := db.ExecContext(ctx, statement.sql, statement.args...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDirect is the cost of the short way alone.
func BenchmarkDirect(b *testing.B) {
	connector, err := Wrap(&fake{count: 1, quiet: true}, Protect("orders", rewrite.Strict))
	if err != nil {
		b.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	ctx := tokenctx.With(b.Context(), 7)
	_ = conn.Raw(func(dc any) error {
		for name, statement := range map[string]struct {
			sql  string
			args []any
		}{
			"unprotected": {`UPDATE notes SET body = $1, kind = $2 WHERE id = $3`, []any{"paid", int64(7), int64(17)}},
			"token":       {guarded, []any{"paid", int64(7), int64(17)}},
			"stand-in":    {guarded, []any{"paid", tokenctx.Arg, int64(17)}},
		} {
			args := named(statement.args)
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, reason := dc.(*Conn).direct(ctx, statement.sql, args, false); reason != gate.OnShortWay {
						b.Fatal(reason)
					}
				}
			})
		}
		return nil
	})
}
