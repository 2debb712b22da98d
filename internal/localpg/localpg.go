// Package localpg runs a throwaway PostgreSQL for tests and for the example
// program. It needs server binaries, which it finds where packages put them or
// downloads; it needs no service, no container and no configuration. It runs on
// Linux, macOS and other Unix systems; on Windows it can only use a running server.
//
// In a test package:
//
//	func TestMain(m *testing.M) { localpg.Main(m) }
//
//	func TestOrders(t *testing.T) {
//		t.Parallel()
//		db, err := sql.Open("pgx", localpg.Database(t, localpg.Template{
//			Name:  "orders",
//			Setup: func(ctx context.Context, dsn string) error { return migrations.Up(ctx, dsn) },
//		}))
//		...
//	}
//
// One server is started for the test binary, when the first test asks for it.
// Each test gets a database of its own, copied from the template. A test that
// kills the server takes a private one from [StartServer].
//
// In a program:
//
//	srv, err := localpg.Open(ctx)
//	if err != nil {
//		return err
//	}
//	defer srv.Stop()
//	db, err := sql.Open("fencerow", srv.DSN("postgres"))
//
// Environment:
//
//	FENCEROW_DATABASE_URL  use this running server instead of starting one
//	FENCEROW_PG_BIN        the directory with initdb and postgres
//	FENCEROW_PG_HOSTILE    if set, start servers with settings that careless SQL
//	                       suffers from: JIT and parallel plans for everything,
//	                       generic plans, a statement_timeout (make test-hostile)
//	NPM_CONFIG_REGISTRY    the registry, as npm reads it, that binaries are
//	                       downloaded from if none are found (package pgdownload)
//
// But for that a server has PostgreSQL's default settings wherever they change what
// a statement does. The server trusts whoever reaches it and by default does not sync to disk:
// its data survives [Server.Kill], not a power cut.
package localpg

// The environment variables the package reads.
const (
	envURL     = "FENCEROW_DATABASE_URL"
	envBin     = "FENCEROW_PG_BIN"
	envHostile = "FENCEROW_PG_HOSTILE"
)
