package pgwasm

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

//go:embed libpg_query.wasm
var libpgQuery []byte

// program is the parser as machine code, of which instances are made.
type program struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// memoryPages bounds the memory of an instance, at 1 GB. The trees of the longest
// texts that sqltext lets through need less.
const memoryPages = 16 << 10

// compiled returns the program, which the first call makes.
var compiled = sync.OnceValues(compile)

func compile() (*program, error) {
	module, err := unshareMemory(libpgQuery)
	if err != nil {
		return nil, err
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0))
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithMemoryLimitPages(memoryPages).
		WithDebugInfoEnabled(false).
		WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesThreads))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	if err := instantiateWasix(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	code, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return &program{r, code}, nil
}

// instantiate makes a module, which reaches no file, no environment and no clock.
func (p *program) instantiate(ctx context.Context) (api.Module, error) {
	return p.runtime.InstantiateModule(ctx, p.code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
}

// unshareMemory returns the module with a memory of one thread. The module declares
// that threads share its memory; wazero would have to reserve all of it at once then,
// and no second thread ever runs.
func unshareMemory(module []byte) ([]byte, error) {
	const (
		header        = 8
		memorySection = 5
		hasMaximum    = 1
		isShared      = 2
	)
	at := header
	for at < len(module) {
		id := module[at]
		size, n := binary.Uvarint(module[at+1:])
		if n <= 0 {
			break
		}
		at += 1 + n
		if id == memorySection && size > 2 && module[at] == 1 && module[at+1] == hasMaximum|isShared {
			module = append([]byte(nil), module...)
			module[at+1] = hasMaximum
			return module, nil
		}
		at += int(size)
	}
	return nil, errors.New("the module has no memory that is shared")
}
