package record

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// The hooks of pgx that see a statement's text.
var (
	_ pgx.QueryTracer   = (*Recorder)(nil)
	_ pgx.PrepareTracer = (*Recorder)(nil)
	_ pgx.BatchTracer   = (*Recorder)(nil)
)

// TraceQueryStart records what is executed or queried.
func (r *Recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.executed(data.SQL, bound(data.Args))
	return ctx
}

// TraceQueryEnd does nothing: the statement is recorded by then.
func (r *Recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TracePrepareStart records what is prepared.
func (r *Recorder) TracePrepareStart(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareStartData) context.Context {
	r.prepared(data.SQL)
	return ctx
}

// TracePrepareEnd does nothing: the statement is recorded by then.
func (r *Recorder) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

// TraceBatchStart does nothing: the statements of the batch follow one by one.
func (r *Recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery records a statement of a batch.
func (r *Recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.executed(data.SQL, bound(data.Args))
}

// TraceBatchEnd does nothing: the statements are recorded by then.
func (r *Recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// bound drops the leading arguments that are options for pgx.
func bound(args []any) []any {
	for len(args) > 0 {
		switch args[0].(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
			args = args[1:]
		default:
			return args
		}
	}
	return args
}
