package pgwasm

import (
	"runtime"
	"sync"
)

// maxInstances bounds how many instances there are at once. Each takes some
// megabytes; whoever comes while all are busy waits.
const maxInstances = 8

var (
	places = make(chan struct{}, min(maxInstances, runtime.GOMAXPROCS(0)))

	idleLock sync.Mutex
	idle     []*instance // the one that was used last comes first, at the end
)

// Start compiles the parser in the background, if nobody has done so yet.
func Start() {
	go func() { _, _ = compiled() }() // whoever needs the parser gets the error
}

// acquire returns an instance that nobody else uses.
func acquire() (*instance, error) {
	places <- struct{}{}
	idleLock.Lock()
	if n := len(idle); n > 0 {
		in := idle[n-1]
		idle = idle[:n-1]
		idleLock.Unlock()
		return in, nil
	}
	idleLock.Unlock()
	p, err := compiled()
	var in *instance
	if err == nil {
		in, err = newInstance(p)
	}
	if err != nil {
		<-places
		return nil, err
	}
	return in, nil
}

// release gives an instance back, or closes it if it can't be used again.
func release(in *instance) {
	if in.isBroken {
		_ = in.module.Close(in.ctx) // it may have failed, and holds nothing but memory
	} else {
		idleLock.Lock()
		idle = append(idle, in)
		idleLock.Unlock()
	}
	<-places
}
