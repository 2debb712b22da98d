// Package lint shows forgotten guards as lint findings do, and fails the tests that
// send such statements: those that the driver refuses, even if the application
// swallows the error, and those that the driver only reports.
//
// Of one test, for the handles that it opens or gets:
//
//	db, err := driver.Open(dsn, lint.Watch(t))
//	lint.WatchDB(t, db)
//
// Of a package, with every handle in the process, however it was opened:
//
//	func TestMain(m *testing.M) { lint.VerifyMain(m) }
//
// Of a function, for a test that looks at the findings itself:
//
//	findings := lint.Check(func() { handler.ServeHTTP(w, r) })
//
// A finding reads like a lint line, at the line that sent the statement:
//
//	/repo/store/orders.go:42: UPDATE on protected table "orders" has no last_token guard (FR101 unguarded-update)
//
// Several of one kind at one place are one. A missing token is a finding (FR301);
// a stale token and a replay are not: the guard was there, and did its work. If
// the place is a library's, [driver.WithCallerSkip] passes over its frames.
//
// If a test expects a refusal, declare it with [Allow]. An Allow that no statement uses
// is a finding, so that none outlives its reason.
//
// # Coverage
//
// No test can find a statement that no test sends. With -fencerow.coverage the tests of a
// package that has [VerifyMain] end with a list of the protected tables: the statements
// that wrote each of them, their places, how often they were sent and with which
// outcome. Tables that no statement wrote are listed too. With -fencerow.coverage=json that is one line
// of JSON. The environment's FENCEROW_COVERAGE=1 (or json) says the same to several
// packages at once, of which not every one knows the flag:
//
//	go test -v ./store -fencerow.coverage
//	FENCEROW_COVERAGE=1 go test -v ./...
//
// Without -v, go test shows the output of a passing package only if it runs in that
// package's directory without naming a package.
package lint
