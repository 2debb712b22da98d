// Package lease draws fencing tokens from PostgreSQL.
//
// A token counts the holders of a lock: whoever takes it draws the next token,
// and puts it into the context of everything it does under the lock:
//
//	token, err := lease.NextToken(ctx, db)
//	if err != nil {
//		return err
//	}
//	ctx = tokenctx.With(ctx, token)
//	_, err = db.ExecContext(ctx, `UPDATE orders
//	    SET status = $1, last_token = $2
//	  WHERE id = $3 AND last_token <= $2`, "paid", tokenctx.Arg, 17)
//
// Draw the token after the lock has been taken, never before: of two holders
// the later one must have the larger token.
//
// db may be opened with any PostgreSQL driver of database/sql, fencerow's own
// among them. The package needs schema fencing in the database, which
// migrations.Up installs, and the role needs
//
//	GRANT USAGE ON SCHEMA fencing TO app;
//	GRANT EXECUTE ON FUNCTION fencing.next_token() TO app;
package lease
