package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// keepTrying runs a turn again and again on a plain connection, made anew when it breaks,
// and counts the turns that went well. dsn returns the way to the present primary.
func keepTrying(ctx context.Context, dsn func() string, pause time.Duration, turn func(context.Context, *pgx.Conn) error) (turns int) {
	for ctx.Err() == nil {
		conn, err := pgx.Connect(ctx, dsn())
		for err == nil && ctx.Err() == nil {
			if err = turn(ctx, conn); err == nil {
				turns++
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return turns
}

// takeOver takes another lease over from its holder, and writes rows of that one into the
// holders' tables, whose tokens are newer than theirs. A sealed table takes none.
func takeOver(random *rand.Rand) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		var token *int64
		if err := conn.QueryRow(ctx, `SELECT token FROM fencing.take('theirs', '1 ms', 'somebody else')`).Scan(&token); err != nil || token == nil {
			return err
		}
		table := tables[random.IntN(len(tables))]
		if table.isSealed {
			return nil
		}
		id := othersFrom + random.IntN(10)
		_, err := conn.Exec(ctx, fmt.Sprintf(`BEGIN; SET LOCAL %s = '%d'; INSERT INTO %s (id, code, tenant, number, last_token) VALUES (%d, 'other%[4]d', 2, %[4]d, %[2]d)
			ON CONFLICT (id) DO UPDATE SET last_token = %[2]d; COMMIT`, table.setting(), *token, table.name, id))
		return err
	}
}

// change has a holder's rows come, go and change without a newer token.
func change(random *rand.Rand) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		for _, table := range tables[:1] { // the others have a wall
			id := 1 + random.IntN(rows)
			text := []string{
				`UPDATE %[1]s SET state = 'done' WHERE id = %[2]d`, `UPDATE %[1]s SET state = 'new' WHERE id = %[2]d`, `DELETE FROM %[1]s WHERE id = %[2]d`,
				`INSERT INTO %[1]s (id, code, number) VALUES (%[2]d, '%[3]s', %[2]d) ON CONFLICT DO NOTHING`,
			}[random.IntN(4)]
			if _, err := conn.Exec(ctx, fmt.Sprintf(text, table.name, id, codeOf(id))); err != nil {
				return err
			}
		}
		return nil
	}
}

// raise is the fault of the control: a row's token is raised behind its holder's back.
func raise(random *rand.Rand) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE `+tables[0].name+` SET last_token = last_token + 1000000 WHERE id = $1`, 1+random.IntN(rows))
		return err
	}
}
