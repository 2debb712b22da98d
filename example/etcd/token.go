package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/fencerow/fencerow/tokenctx"
)

// ErrLockLost says that a mutex has lost its lock, or given it back.
var ErrLockLost = errors.New("lock lost")

// TokenOf returns the fencing token of the lock that mutex holds: the revision
// at which its key was created. etcd serves waiters in the order of just these
// revisions, so each later holder's is larger, and while the key exists it
// stays the same.
//
// No other number will do. The revision in an answer's header is the whole
// store's: whoever asks later gets a larger one, a holder that has lost the
// lock as well. The key's version is 1 for every holder, and the id of the
// lease doesn't say who came first.
//
// Give each holder a session of its own: mutexes of one session and one name
// have the same key, and so the same lock and token.
func TokenOf(ctx context.Context, client *clientv3.Client, mutex *concurrency.Mutex) (tokenctx.Token, error) {
	key := mutex.Key()
	slash := strings.LastIndexByte(key, '/')
	if slash < 0 { // etcd has no key yet before Lock, and a placeholder after Unlock
		return 0, fmt.Errorf("%w: the mutex has no key, so it was never locked or is unlocked: lock it first", ErrLockLost)
	}
	// In one transaction: the key is the one that Lock made, and the oldest of
	// its lock. A Lock that failed can leave a key that still waits in line, and
	// its number would shut out whoever holds the lock.
	oldest := clientv3.OpGet(key[:slash+1], clientv3.WithFirstCreate()...)
	answer, err := client.Txn(ctx).If(mutex.IsOwner()).Then(oldest).Commit()
	if err != nil {
		return 0, fmt.Errorf("read the key of the lock: %w", err)
	}
	if !answer.Succeeded {
		return 0, fmt.Errorf("%w: key %q is gone, with its lease or by hand, or is a later lock's: stop, and lock again in a new session", ErrLockLost, key)
	}
	holder := answer.Responses[0].GetResponseRange().Kvs[0]
	if string(holder.Key) != key {
		return 0, fmt.Errorf("lock not held: key %q waits for %q: write once Lock has returned without an error", key, holder.Key)
	}
	return tokenctx.Token(holder.CreateRevision), nil
}
