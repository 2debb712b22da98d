//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/tokenctx"
)

// scenario is a run: a scheduler, which is this process, and two workers.
type scenario struct {
	*timeline
	dsn  string
	a, b *worker
	look func(ctx context.Context) error // called while A is frozen
}

const rowPath = "/rows/1"

// fenced is the run under tokens. The scheduler stands for any lock service:
// it decides who holds the lock, and draws a token each time that it does.
func (s *scenario) fenced(ctx context.Context) error {
	db, err := sql.Open("pgx", s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	tokenA, err := lease.NextToken(ctx, db)
	if err != nil {
		return err
	}
	s.say("scheduler", "gives the lock on row 1 to A, with token %s", tokenA)
	answerA, err := s.freezeInTheMiddle(ctx, tokenA)
	if err != nil {
		return err
	}

	tokenB, err := lease.NextToken(ctx, db)
	if err != nil {
		return err
	}
	s.say("scheduler", "A's time is up: gives the lock to B, with token %s", tokenB)
	if err := s.workThrough(ctx, tokenB); err != nil {
		return err
	}
	s.say("worker B", `writes "written by B" with token %s: accepted`, tokenB)

	if err := s.wakeA(); err != nil {
		return err
	}
	late := <-answerA
	if err := late.check("the late write of A", http.StatusConflict); err != nil {
		return err
	}
	s.say("worker A", `writes "written by A" with token %s: REJECTED, %s`, tokenA, statusText(late.status))
	s.more(late.body)

	if err := s.forgottenGuard(ctx, tokenB); err != nil {
		return err
	}
	return s.finalFenced(ctx, tokenB)
}

// forgottenGuard has B, the rightful holder, run a statement that compares
// nothing. Were it sent, it would be sent from a paused worker one day, too.
func (s *scenario) forgottenGuard(ctx context.Context, token tokenctx.Token) error {
	answer := <-s.b.post(ctx, rowPath+"/forgotten", token)
	if err := answer.check("the handler that forgot the guard", http.StatusInternalServerError); err != nil {
		return err
	}
	if !strings.Contains(answer.body, "(FR101 unguarded-update)") {
		return fmt.Errorf("the handler that forgot the guard should be refused by rule FR101, and answers: %s", answer.body)
	}
	s.say("worker B", "runs a handler that forgot the guard: REFUSED, the statement was not sent")
	s.note("")
	s.quote(fromHere(answer.body))
	return nil
}

// finalFenced reads what is in the row now, which must be B's.
func (s *scenario) finalFenced(ctx context.Context, tokenB tokenctx.Token) error {
	var value string
	var token tokenctx.Token
	err := read(ctx, s.dsn, `SELECT value, last_token FROM protected_rows WHERE id = 1`, &value, &token)
	if err != nil {
		return fmt.Errorf("read the final value: %w", err)
	}
	s.note("")
	s.note("final value, read over a plain connection: %q (token %s)", value, token)
	if value != "written by B" || token != tokenB {
		return fmt.Errorf(`the final value should be "written by B" with token %s`, tokenB)
	}
	return nil
}

// unfenced is the same run without tokens.
func (s *scenario) unfenced(ctx context.Context) error {
	s.say("scheduler", "gives the lock on row 1 to A")
	answerA, err := s.freezeInTheMiddle(ctx, 0)
	if err != nil {
		return err
	}
	s.say("scheduler", "A's time is up: gives the lock to B")
	if err := s.workThrough(ctx, 0); err != nil {
		return err
	}
	s.say("worker B", `writes "written by B": accepted; B holds the lock, all is well`)

	if err := s.wakeA(); err != nil {
		return err
	}
	if err := (<-answerA).check("the late write of A", http.StatusOK); err != nil {
		return err
	}
	s.say("worker A", `writes "written by A": ACCEPTED, although the lock is B's; nobody notices`)

	var value string
	if err := read(ctx, s.dsn, `SELECT value FROM unprotected_rows WHERE id = 1`, &value); err != nil {
		return fmt.Errorf("read the final value: %w", err)
	}
	s.note("")
	s.note("final value, read over a plain connection: %q", value)
	if value != "written by A" {
		return errors.New(`the final value should be "written by A", as nothing protects the row`)
	}
	s.note("B's work is lost, and both workers were told that they succeeded. Run it without -unsafe.")
	return nil
}

// freezeInTheMiddle has A begin its work, and freezes it between its read and
// its write. A's answer will come over the channel.
//
// Here the scheduler goes on waiting for that answer. If it hung up instead,
// the context of A's request would be cancelled: but only once A runs again,
// and in a race with the write. That is no protection.
func (s *scenario) freezeInTheMiddle(ctx context.Context, token tokenctx.Token) (<-chan response, error) {
	answer, err := s.begin(ctx, s.a, token)
	if err != nil {
		return nil, err
	}
	if err := s.a.freeze(ctx); err != nil {
		return nil, err
	}
	s.say("worker A", "is FROZEN in the middle of its work (SIGSTOP, like a GC pause or a VM move)")
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	// Sent now, so that nothing but SIGSTOP holds A back.
	return answer, s.a.proceed()
}

// wakeA lets A run on.
func (s *scenario) wakeA() error {
	if err := s.a.wake(); err != nil {
		return err
	}
	s.say("worker A", "WAKES UP (SIGCONT), and knows nothing of all this: it goes on where it was")
	return nil
}

// workThrough has B do the same work without a pause.
func (s *scenario) workThrough(ctx context.Context, token tokenctx.Token) error {
	answer, err := s.begin(ctx, s.b, token)
	if err != nil {
		return err
	}
	if err := s.b.proceed(); err != nil {
		return err
	}
	return (<-answer).check("the write of B", http.StatusOK)
}

// begin sends the request for the work, and returns when the worker is in the
// middle of it.
func (s *scenario) begin(ctx context.Context, w *worker, token tokenctx.Token) (<-chan response, error) {
	answer := w.post(ctx, rowPath, token)
	computing := make(chan error, 1)
	var value string
	go func() {
		var err error
		value, err = w.await(ctx, eventComputing)
		computing <- err
	}()
	select {
	case err := <-computing:
		if err != nil {
			return nil, err
		}
		s.say("worker "+w.name, "reads %q and computes the new value", value)
		return answer, nil
	case early := <-answer:
		if early.err == nil {
			early.err = fmt.Errorf("it answers %s: %s", statusText(early.status), early.body)
		}
		return nil, fmt.Errorf("worker %s has not come to compute anything: %w", w.name, early.err)
	}
}

// fromHere shortens the paths in a message: most terminals open those relative
// to where one is.
func fromHere(message string) string {
	dir, err := os.Getwd()
	if err != nil {
		return message
	}
	return strings.ReplaceAll(message, dir+string(os.PathSeparator), "")
}
