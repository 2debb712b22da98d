package sqlfiles

import (
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/rewrite"
)

// Explain says what a statement does to the policy's tables, as
// [rewrite.Plan.Explain] does, and whether it is refused. It may have the
// placeholders that files have, and is shown with them.
func Explain(policy *rewrite.Policy, sql string) (text string, refused bool) {
	tokens, fault := sqltext.ScanPrefix(sql)
	q := query{}
	if fault == nil {
		q = placeholders(sql, tokens)
	}
	if len(q.edits) > 0 {
		sql = sql[:tokens[0].Start] + q.text + sql[tokens[len(tokens)-1].End:]
	}
	plan := policy.Plan(sql)
	for i := range plan.Violations {
		if v := &plan.Violations[i]; v.Line > 0 {
			v.Snippet, v.Column = q.respell(v)
		}
	}
	text, _ = q.spelled(plan.Explain(), 0)
	return text, len(plan.Violations) > 0
}
