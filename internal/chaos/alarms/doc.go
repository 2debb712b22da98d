// Command alarms has the present holders of leases send random statements through
// fencerow while their connections are held, delayed and cut, PostgreSQL is killed, its
// standby promoted, and other leases are taken over beside them. Nobody takes their own
// leases, so nothing may ever tell them that they are stale. docs/chaos.md says more.
//
//	go run ./internal/chaos/alarms                     # 100,000 statements, and then the control
//	go run ./internal/chaos/alarms -statements 5000 -seed 7
//
// The exit code is 1 if a present holder was alarmed, or if the control, in which rows'
// tokens are raised behind the holders' backs, has alarmed nobody. It needs a Unix.
//
//   - shapes.go, upserts.go: the random statements
//   - holder.go: who sends them, and what the answers are counted as
//   - verdict.go, tally.go: which answers are alarms, and how many there were
//   - faults.go: what is done to the holders' connections and to the servers
//   - others.go: the other lease, and the fault of the control
//   - setup.go: the tables
//   - run.go, main.go: a run, and its table
package main
