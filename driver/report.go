package driver

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fencerow/fencerow/rewrite"
)

// Event is something that a reporter is told of.
type Event struct {
	Kind     EventKind
	Table    string       // the protected table, if one is concerned
	Rule     rewrite.Rule // of what was refused or reported; else ""
	Location string       // the caller's file:line, as far as it is known
	SQL      string       // the refused or reported statement with "?" for its literals, for an [Observer] only
	Err      error        // a *rewrite.Violation, *StaleError, *ReplayError or *PartialError, or why a look failed
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventRefused  EventKind = "refused"  // not sent; the caller gets Err
	EventReported EventKind = "reported" // sent as it is: the table's level is Report
	EventStale    EventKind = "stale"    // a row carries a newer token
	EventReplay   EventKind = "replay"   // the row carries this very token already
	EventUnfit    EventKind = "unfit"    // the table can't be held to its tokens, as Err says: writes to it are refused until that is mended
	EventUnread   EventKind = "unread"   // a look at the registry and the catalog failed with Err; what is protected stays as it was
)

// WithReporter adds a function that is told of what was refused or reported,
// of stale tokens and of looks that failed. It runs on the caller's goroutine before the statement
// returns, must not use the connection that the statement runs on, and must
// return: a panic takes the connection along. No event holds a value of an
// argument or a literal; an [*rewrite.Violation] has the statement's guarded
// form.
func WithReporter(report func(context.Context, Event)) Option {
	return func(s *settings) error {
		if report == nil {
			return errors.New("fencerow: WithReporter needs a function")
		}
		s.reporters = append(s.reporters, report)
		return nil
	}
}

// LogTo returns a reporter for [WithReporter] that logs each event: what was
// refused as an error, the rest as a warning.
func LogTo(logger *slog.Logger) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		level := slog.LevelWarn
		if e.Kind == EventRefused {
			level = slog.LevelError
		}
		attrs := make([]slog.Attr, 0, 4)
		for _, a := range []slog.Attr{slog.String("table", e.Table), slog.String("rule", string(e.Rule)), slog.String("location", e.Location)} {
			if a.Value.String() != "" {
				attrs = append(attrs, a)
			}
		}
		logger.LogAttrs(ctx, level, "fencerow: "+string(e.Kind), append(attrs, slog.String("error", e.summary()))...)
	}
}

// summary is the error on one line.
func (e Event) summary() string {
	var v *rewrite.Violation
	if errors.As(e.Err, &v) {
		return v.Message
	}
	return e.Err.Error()
}

// refuse notes that a statement is not sent, and returns the violation with
// the caller's line. Other errors are none of its business.
func (c *Conn) refuse(ctx context.Context, sql string, err error) error {
	return c.note(ctx, EventRefused, sql, err)
}

// report notes that a statement is sent although a violation was found.
func (c *Conn) report(ctx context.Context, sql string, v error) {
	_ = c.note(ctx, EventReported, sql, v)
}

func (c *Conn) note(ctx context.Context, kind EventKind, sql string, err error) error {
	s := c.connector.settings
	err = s.located(err)
	var v *rewrite.Violation
	if !errors.As(err, &v) {
		return err
	}
	c.connector.counters.rule(kind, v.Rule)
	c.connector.tellOf(ctx, sql, Event{Kind: kind, Table: v.Table, Rule: v.Rule, Location: v.Location, Err: err})
	return err
}

// outcome notes that a guarded write met another token.
func (c *Conn) outcome(ctx context.Context, kind EventKind, table string, err error) {
	c.connector.counters.outcome(kind)
	if c.connector.told() {
		c.connector.tell(ctx, Event{Kind: kind, Table: table, Location: c.connector.settings.caller(), Err: err})
	}
}
