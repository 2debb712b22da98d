// Package lint shows forgotten guards as lint findings do, and fails the tests that
// send such statements: those that the driver refuses, whatever the application
// does with the error, and those that it only reports.
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
// a stale token and a replay are none: the guard was there, and did its work. If
// the place is a library's, [driver.WithCallerSkip] passes over its frames.
//
// A test of the refusal itself says so with [Allow]. One that meets nothing is a
// finding in its place, so that none outlives its reason.
//
// # Coverage
//
// What no test sends, no test can find. With -fencerow.coverage the tests of a
// package that has [VerifyMain] end with what they wrote of each protected table:
// the statements with their places, how often they were sent and what came of it,
// and the tables that nothing wrote. With -fencerow.coverage=json that is one line
// of JSON. The environment's FENCEROW_COVERAGE=1 (or json) says the same to several
// packages at once, of which not every one knows the flag:
//
//	go test -v ./store -fencerow.coverage
//	FENCEROW_COVERAGE=1 go test -v ./...
//
// Without -v, go test shows what a test prints only where the test fails, or if it
// is run in the package's own directory without naming one.
package lint
