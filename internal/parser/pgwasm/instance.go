package pgwasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// function is a function of libpg_query that makes a result of a text. Its result is
// a struct of words of four bytes in the parser's memory.
type function struct {
	name, free         string // the second one frees the result
	isBytes            bool   // the result begins with a length and a pointer, not with a pointer to a C string
	error              uint32 // where the pointer to the error is in the struct
	takesLengthAndData bool   // the argument is a struct of these two, not a C string
}

var (
	parse         = function{name: "pg_query_parse", free: "pg_query_free_parse_result", error: 8}
	parseProtobuf = function{name: "pg_query_parse_protobuf", free: "pg_query_free_protobuf_parse_result", isBytes: true, error: 12}
	scan          = function{name: "pg_query_scan", free: "pg_query_free_scan_result", isBytes: true, error: 12}
	deparse       = function{name: "pg_query_deparse_protobuf", free: "pg_query_free_deparse_result", error: 4, takesLengthAndData: true}
)

// instance is a parser with a memory of its own. It serves one caller at a time.
type instance struct {
	ctx       context.Context // knows the instance, for the functions that the parser imports
	module    api.Module
	memory    api.Memory
	stack     api.MutableGlobal
	stackEnd  uint32 // the lowest address of the stack, where its guard begins
	structs   uint32 // the address of room for a result, and behind it for an argument
	functions map[string]api.Function

	checkpoints []checkpoint // of the call that runs
	isBroken    bool         // nobody may call it again
}

// The instance's stack. The one that the parser was built with has 64 KB, and what
// outgrows it overwrites the parser's tables without notice. So the parser gets
// another, of the size that sqltext's limits are for, with a guard at its end that is
// looked at after each call.
const (
	// StackSize is how many bytes of stack the parser has.
	StackSize = 8 << 20

	stackGuard = 4 << 10
	resultSize = 16
	structSize = 2 * resultSize
	guardByte  = 0xa5
)

var guard = bytes.Repeat([]byte{guardByte}, stackGuard)

// maxMemory is the memory in bytes with which an instance is kept for the next
// caller. A longer text needs more for its tree, and memory of WebAssembly can't shrink.
const maxMemory = StackSize + 8<<20

// maxInput bounds the length of a text, far above what sqltext lets through.
const maxInput = 1 << 30

// maxShallow is the length of a text in bytes that can't nest deep. For a deep one wazero
// makes a longer stack for the machine code, beside the parser's own. A function keeps
// the stack that it was called with, and each setjmp copies all of it.
const maxShallow = 512

var (
	errMemory        = errors.New("out of its memory")
	errStackOverflow = errors.New("its stack overflowed")
)

type instanceKey struct{}

func newInstance(p *program) (*instance, error) {
	in := &instance{functions: map[string]api.Function{}}
	in.ctx = experimental.WithSnapshotter(context.WithValue(context.Background(), instanceKey{}, in))
	module, err := p.instantiate(in.ctx)
	if err != nil {
		return nil, err
	}
	in.module, in.memory = module, module.Memory()
	if err := in.prepare(); err != nil {
		return nil, errors.Join(err, module.Close(in.ctx))
	}
	return in, nil
}

// prepare gives the instance its stack.
func (in *instance) prepare() (err error) {
	var isMutable bool
	if in.stack, isMutable = in.module.ExportedGlobal("__stack_pointer").(api.MutableGlobal); !isMutable {
		return errors.New("it has no stack pointer")
	}
	defer recoverFault(&err)
	in.stackEnd = in.allocate(StackSize + stackGuard)
	in.structs = in.allocate(structSize)
	in.write(in.stackEnd, guard)
	in.resetStack()
	in.invoke("pg_query_init")
	return nil
}

// resetStack empties the stack.
func (in *instance) resetStack() {
	const alignment = 16
	in.stack.Set(api.EncodeU32((in.stackEnd + stackGuard + StackSize) &^ (alignment - 1)))
}

// call calls a function for an input.
func (in *instance) call(input string, f function, read func(result []byte)) (err error) {
	if uint64(len(input)) >= maxInput {
		return fmt.Errorf("%w: %w", ErrFailed, errMemory)
	}
	in.isBroken = true // until all has gone well
	defer recoverFault(&err)
	in.resetStack()
	in.checkpoints = in.checkpoints[:0]

	text := in.allocate(uint32(len(input)) + 1)
	in.write(text, append([]byte(input), 0))
	result, argument := in.structs, text
	if f.takesLengthAndData {
		argument = in.structs + resultSize
		var pair []byte
		pair = binary.LittleEndian.AppendUint32(pair, uint32(len(input)))
		in.write(argument, binary.LittleEndian.AppendUint32(pair, text))
	}
	in.invoke(f.name, result, argument)
	if !bytes.Equal(in.read(in.stackEnd, stackGuard), guard) {
		return fmt.Errorf("%w: %w", ErrFailed, errStackOverflow)
	}
	complaint := in.readError(in.word(result + f.error))
	switch {
	case complaint != nil:
	case f.isBytes:
		read(in.read(in.word(result+4), in.word(result)))
	default:
		read(in.readString(in.word(result)))
	}
	in.invoke(f.free, result)
	in.invoke("free", text)
	clear(in.checkpoints) // they hold copies of the stack
	if len(input) > maxShallow {
		clear(in.functions)
	}
	in.isBroken = in.memory.Size() > maxMemory
	if complaint != nil {
		return complaint
	}
	return nil
}

// fault is a panic of this package's own. The parser's traps come as one, too.
type fault struct{ error }

// recoverFault returns a fault as an error.
func recoverFault(err *error) {
	if v := recover(); v != nil {
		f, isFault := v.(fault)
		if !isFault {
			panic(v)
		}
		what, _, _ := strings.Cut(f.Error(), "\n") // wazero's stack comes behind
		*err = fmt.Errorf("%w: %s", ErrFailed, what)
	}
}

func (in *instance) invoke(name string, args ...uint32) uint32 {
	f := in.functions[name]
	if f == nil {
		if f = in.module.ExportedFunction(name); f == nil {
			panic(fault{fmt.Errorf("it has no function %s", name)})
		}
		in.functions[name] = f
	}
	var stack [2]uint64
	for i, arg := range args {
		stack[i] = api.EncodeU32(arg)
	}
	if err := f.CallWithStack(in.ctx, stack[:]); err != nil {
		panic(fault{err})
	}
	return api.DecodeU32(stack[0])
}

func (in *instance) allocate(size uint32) uint32 {
	address := in.invoke("malloc", size)
	if address == 0 {
		panic(fault{errMemory})
	}
	return address
}

func (in *instance) write(address uint32, data []byte) {
	if !in.memory.Write(address, data) {
		panic(fault{errMemory})
	}
}

// read returns a part of the memory, which is valid until the next call.
func (in *instance) read(address, length uint32) []byte {
	data, ok := in.memory.Read(address, length)
	if !ok {
		panic(fault{errMemory})
	}
	return data
}

func (in *instance) word(address uint32) uint32 {
	return binary.LittleEndian.Uint32(in.read(address, 4))
}

// readString returns a C string, nothing for a null pointer.
func (in *instance) readString(address uint32) []byte {
	if address == 0 {
		return nil
	}
	size := in.memory.Size()
	if address >= size {
		panic(fault{errMemory})
	}
	rest := in.read(address, size-address)
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		panic(fault{errMemory})
	}
	return rest[:end]
}

// readError returns the complaint in a struct PgQueryError, nil if there is none.
func (in *instance) readError(address uint32) *Error {
	const cursorpos = 16
	if address == 0 {
		return nil
	}
	return &Error{
		Message:   string(in.readString(in.word(address))),
		Cursorpos: int(int32(in.word(address + cursorpos))),
	}
}
