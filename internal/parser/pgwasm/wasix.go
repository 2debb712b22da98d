package pgwasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// What the parser was built for is WASIX, a system with threads and with setjmp. Of its
// functions the parser needs those of setjmp, by which it reports errors in a text.

// checkpoint is where longjmp returns to.
type checkpoint struct {
	snapshot     experimental.Snapshot
	result       uint32 // the address where setjmp's result goes
	stackPointer uint64
}

var errUnsupported = errors.New("it called for another thread or a signal, which it has not")

// instantiateWasix makes the module of the functions.
func instantiateWasix(ctx context.Context, r wazero.Runtime) error {
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	builder := r.NewHostModuleBuilder("wasix_32v1")
	add := func(name string, f api.GoModuleFunc, params []api.ValueType, results ...api.ValueType) {
		builder.NewFunctionBuilder().WithGoModuleFunction(f, params, results).Export(name)
	}
	add("stack_checkpoint", setCheckpoint, []api.ValueType{i32, i32}, i32)
	add("stack_restore", restoreCheckpoint, []api.ValueType{i32, i64})
	add("proc_id", getProcess, []api.ValueType{i32}, i32)
	add("callback_signal", ignore, []api.ValueType{i32, i32})
	add("futex_wait", fail, []api.ValueType{i32, i32, i32, i32}, i32)
	add("futex_wake", fail, []api.ValueType{i32, i32}, i32)
	add("futex_wake_all", fail, []api.ValueType{i32, i32}, i32)
	add("thread_exit", fail, []api.ValueType{i32})
	add("thread_signal", fail, []api.ValueType{i32, i32}, i32)
	_, err := builder.Instantiate(ctx)
	return err
}

// setCheckpoint is setjmp. The first argument is the address of the number by which
// longjmp finds the checkpoint, the second that of setjmp's result.
func setCheckpoint(ctx context.Context, _ api.Module, stack []uint64) {
	in := ctx.Value(instanceKey{}).(*instance)
	number, result := api.DecodeU32(stack[0]), api.DecodeU32(stack[1])
	if !in.memory.WriteUint64Le(number, uint64(len(in.checkpoints))) || !in.memory.WriteUint64Le(result, 0) {
		panic(errMemory)
	}
	in.checkpoints = append(in.checkpoints, checkpoint{experimental.GetSnapshotter(ctx).Snapshot(), result, in.stack.Get()})
	stack[0] = 0
}

// restoreCheckpoint is longjmp. As in C, what the memory has stays.
func restoreCheckpoint(ctx context.Context, _ api.Module, stack []uint64) {
	in := ctx.Value(instanceKey{}).(*instance)
	number, ok := in.memory.ReadUint64Le(api.DecodeU32(stack[0]))
	if !ok || number >= uint64(len(in.checkpoints)) {
		panic(errMemory)
	}
	to := in.checkpoints[number]
	in.stack.Set(to.stackPointer)
	if !in.memory.WriteUint64Le(to.result, stack[1]) {
		panic(errMemory)
	}
	stack[0] = 0
	to.snapshot.Restore(stack[:1])
}

// getProcess writes the number of the process to an address.
func getProcess(ctx context.Context, _ api.Module, stack []uint64) {
	in := ctx.Value(instanceKey{}).(*instance)
	if !in.memory.WriteUint32Le(api.DecodeU32(stack[0]), 1) {
		panic(errMemory)
	}
	stack[0] = 0
}

// ignore tells the system which function takes signals: none ever comes.
func ignore(context.Context, api.Module, []uint64) {}

func fail(context.Context, api.Module, []uint64) { panic(errUnsupported) }
