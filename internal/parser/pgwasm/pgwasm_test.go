package pgwasm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The file is the one that was published, see fetch.
func TestFile(t *testing.T) {
	sum := sha256.Sum256(libpgQuery)
	require.Equal(t, "337b365fd63df40551cdd0c909f3552a00cd344e7e060918f678393862136313", hex.EncodeToString(sum[:]))
}

// Whatever happens to an instance, the next caller gets a whole one.
func TestAfterFaults(t *testing.T) {
	deep, err := ParseToProtobuf("SELECT 1" + strings.Repeat("+1", 9_500))
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		call func() error
		want error // nil if the parser itself complains
	}{
		{"a complaint", func() error { _, err := ParseToJSON("SELEC 1"); return err }, nil},
		{"a complaint of the scanner", func() error { _, err := ScanToProtobuf("SELECT '1"); return err }, nil},
		{"a stack of machine code that overflows", func() error { _, err := ParseToJSON("SELECT 1" + strings.Repeat("+1", 200_000)); return err }, ErrFailed},
		{"a stack that overflows", func() error { _, err := DeparseFromProtobuf(deep); return err }, ErrFailed},
		{"a memory that is used up", func() (err error) {
			in, err := acquire()
			require.NoError(t, err)
			defer release(in)
			in.isBroken = true
			defer recoverFault(&err)
			in.allocate(memoryPages << 16)
			return nil
		}, ErrFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				err := c.call()
				require.Error(t, err)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
					require.NotContains(t, err.Error(), "\n")
				}
				tree, err := ParseToJSON("SELECT 1")
				require.NoError(t, err)
				require.Contains(t, tree, `"ival":{"ival":1}`)
			}
		})
	}
	require.LessOrEqual(t, len(idle), cap(places))
	require.Empty(t, places)
}

// Many callers at once share few instances, and get each its own answer.
func TestConcurrency(t *testing.T) {
	Start()
	var callers sync.WaitGroup
	for i := range 4 * cap(places) {
		callers.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("t%d_%d", i, j)
				tree, err := ParseToJSON("SELECT 1 FROM " + name)
				if err != nil || !strings.Contains(tree, `"relname":"`+name+`"`) {
					t.Errorf("%s: %s, %v", name, tree, err)
				}
				if _, err := ParseToJSON("SELECT FROM FROM " + name); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
		})
	}
	callers.Wait()
	require.LessOrEqual(t, len(idle), cap(places))
}

// An instance whose memory has grown for a long text is not kept.
func TestLongTextLeavesNoMemory(t *testing.T) {
	_, err := ParseToJSON("SELECT 1" + strings.Repeat(", a.b", 100_000))
	require.NoError(t, err)
	for _, in := range idle {
		require.LessOrEqual(t, in.memory.Size(), uint32(maxMemory))
	}
}
