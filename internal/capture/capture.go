package capture

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/fencerow/fencerow/internal/capture/bunapp"
	"github.com/fencerow/fencerow/internal/capture/entapp"
	"github.com/fencerow/fencerow/internal/capture/gooseapp"
	"github.com/fencerow/fencerow/internal/capture/goquapp"
	"github.com/fencerow/fencerow/internal/capture/gormapp"
	"github.com/fencerow/fencerow/internal/capture/migrateapp"
	"github.com/fencerow/fencerow/internal/capture/record"
	"github.com/fencerow/fencerow/internal/capture/riverapp"
	"github.com/fencerow/fencerow/internal/capture/sqlxapp"
	"github.com/fencerow/fencerow/internal/capture/squirrelapp"
	"github.com/fencerow/fencerow/internal/localpg"
)

// library is what is captured into one file.
type library struct {
	name string
	run  func(context.Context, *record.Session) error
}

var libraries = []library{
	{"bun", bunapp.Run},
	{"ent", entapp.Run},
	{"golang-migrate", migrateapp.Run},
	{"goose", gooseapp.Run},
	{"goqu", goquapp.Run},
	{"gorm", gormapp.Run},
	{"river", riverapp.Run},
	{"sqlx", sqlxapp.Run},
	{"squirrel", squirrelapp.Run},
}

// captureAll runs the libraries side by side: River's run is mostly waiting.
func captureAll(ctx context.Context, srv *localpg.Server, out string) error {
	errs := make([]error, len(libraries))
	var wg sync.WaitGroup
	for i, lib := range libraries {
		wg.Go(func() { errs[i] = capture(ctx, srv, lib, out) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// capture runs one library in a database of its own. The name is fixed, as it
// comes up in statements.
func capture(ctx context.Context, srv *localpg.Server, lib library, out string) (err error) {
	database := strings.ReplaceAll(lib.name, "-", "_") + "_app"
	if err := srv.CreateDatabase(ctx, database, ""); err != nil {
		return err
	}
	s, err := record.Open(lib.name, srv.DSN(database))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := lib.run(ctx, s); err != nil {
		return err
	}
	return s.Write(out)
}
