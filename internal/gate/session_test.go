package gate

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// reported is a session by the settings that its server has reported.
type reported map[string]string

func (r reported) IsClosed() bool                     { return r == nil }
func (r reported) ParameterStatus(name string) string { return r[name] }

// settled are the settings of a session that the check takes for what it is.
func settled(name, value string) reported {
	r := reported{"standard_conforming_strings": "on", "client_encoding": "UTF8"}
	r[name] = value
	return r
}

func TestViolationOfASession(t *testing.T) {
	const guarded, unguarded = `UPDATE orders SET n = 1, last_token = $1 WHERE id = 1 AND last_token <= $1`, `UPDATE orders SET n = 1`
	p := leased(t)
	for name, c := range map[string]struct {
		sql      string
		isLoose  bool
		settings Settings
		rule     check.Rule
	}{
		"guarded":                                {sql: guarded, settings: settled("search_path", "public")},
		"guarded, without settings to look at":   {sql: guarded},
		"unguarded":                              {sql: unguarded, rule: check.UnguardedUpdate},
		"after what the check rests on":          {sql: `SELECT 1`, isLoose: true, rule: check.SessionState},
		"backslashes in strings":                 {sql: guarded, settings: settled("standard_conforming_strings", "off"), rule: check.SessionState},
		"another encoding":                       {sql: guarded, settings: settled("client_encoding", "SJIS"), rule: check.SessionState},
		"another encoding, on a closed session":  {sql: guarded, settings: reported(nil)},
		"another encoding, and nothing to guard": {sql: `SELECT 1`, settings: settled("client_encoding", "SJIS")},
		"operators of another schema first":      {sql: guarded, settings: settled("search_path", "public, pg_catalog"), rule: check.UnsafePath},
		"built-in operators first":               {sql: guarded, settings: settled("search_path", "pg_catalog, public")},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.View([]string{"public"})
			plan, _ := v.Plan(t.Context(), c.sql, EnforcedTables)
			found := ViolationOf(plan, v, c.isLoose, c.settings)
			if c.rule == "" {
				require.Nil(t, found)
				return
			}
			require.NotNil(t, found)
			require.Equal(t, c.rule, found.Rule, found.Message)
		})
	}
}

// A session goes by its first path until a statement may have changed that.
func TestViewOfASession(t *testing.T) {
	p, s := leased(t), State{Path: []string{"public"}, IsPathKnown: true}
	first := s.View(p, nil)
	require.Same(t, first, s.View(p, first))
	s.ForgetPath()
	pathless := s.View(p, first)
	require.NotSame(t, first, pathless)
	require.True(t, pathless.IsPathless)
	require.NotSame(t, pathless, s.View(leased(t), pathless))
}

// What an earlier text has put off is made by one that may run it.
func TestMakesNow(t *testing.T) {
	var s State
	require.False(t, s.MakesNow(`EXECUTE p`, false, false))
	require.True(t, s.MakesNow(`EXECUTE p`, false, true))
	require.True(t, s.MakesNow(`PREPARE p AS SELECT make()`, true, false))
	require.True(t, s.IsPutOff)
	require.False(t, s.MakesNow(`SELECT 1`, false, false))
	require.True(t, s.MakesNow(`EXECUTE p`, false, false))
}

// pathAsker answers with a search path.
type pathAsker struct {
	path  string
	err   error
	state byte
	asked int
}

func (a *pathAsker) TxStatus() byte { return a.state }

func (a *pathAsker) AskRow(_ context.Context, _ string, into ...any) error {
	a.asked++
	if a.err != nil {
		return a.err
	}
	*into[0].(*string), *into[1].(*string) = a.path, "me"
	return nil
}

func TestAskPath(t *testing.T) {
	first := []string{"me", "public"}
	unread := errors.New("the server has gone away")
	for name, c := range map[string]struct {
		asker pathAsker
		same  bool
		err   error
		asked int
	}{
		"the path that the session began with": {asker: pathAsker{path: `"$user", public`, state: 'I'}, same: true, asked: 1},
		"another path":                         {asker: pathAsker{path: `archive`, state: 'T'}, asked: 1},
		"a transaction that has failed":        {asker: pathAsker{path: `archive`, state: 'E'}, same: true},
		"no answer":                            {asker: pathAsker{err: unread, state: 'I'}, same: true, err: unread, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			view := leased(t).View(first)
			v := Verdict{View: view}
			v.Enforced, _ = view.Plan(t.Context(), `SELECT 1`, EnforcedTables)
			require.ErrorIs(t, AskPath(t.Context(), &c.asker, &v, `SELECT 1`, first), c.err)
			require.Equal(t, c.asked, c.asker.asked)
			require.Equal(t, c.same, v.View == view)
		})
	}
}
