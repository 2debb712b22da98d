package check

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// A parser that came to no answer is told from one that complains.
func TestParserFails(t *testing.T) {
	const sql = "UPDATE orders SET status = 'secret'"
	policy, err := NewPolicy()
	require.NoError(t, err)
	failed := policy.unreadViolation(&sqltext.Text{SQL: sql}, errors.New("the SQL parser failed: out of its memory"))
	require.Equal(t, Unparsable, failed.Rule)
	require.Equal(t, "SQL text cannot be checked: the SQL parser failed: out of its memory; shorten it or pass a long list as an array parameter, and please report it if it is short", failed.Message)
	require.True(t, (&Plan{Violations: []Violation{*failed}}).HasParserFailed())

	complaint := policy.unreadViolation(&sqltext.Text{SQL: sql}, &parser.Error{Message: "syntax error"})
	require.False(t, (&Plan{Violations: []Violation{*complaint}}).HasParserFailed())
}
