package main

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	fencerow "github.com/fencerow/fencerow/driver"
)

// scaling is where hits are found, and by how many texts: the connection's own
// cache has the one, and the shared cache has them all.
var scaling = []struct {
	where string
	texts int
}{{"own", 1}, {"shared", workingSet}}

// BenchmarkScaling is hits from as many goroutines as there are CPUs, each on a
// connection of its own. Run it with -cpu 1,2.
func BenchmarkScaling(b *testing.B) {
	for _, s := range scaling {
		list := numbered(execText(unprotected, small), s.texts)
		for _, r := range []rival{wrappers[0], wrappers[len(wrappers)-1]} {
			b.Run(s.where+"/"+r.name, func(b *testing.B) {
				db := opened(b, r)
				require.NoError(b, sendAll(b, db, list))
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					if err := hits(b, db, list, pb.Next); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}

// sendAll makes the texts known.
func sendAll(tb testing.TB, db *sql.DB, list []string) error {
	i := 0
	return hits(tb, db, list, func() bool { i++; return i <= len(list) })
}

// hits sends the texts in turn on one connection while there is a next.
func hits(tb testing.TB, db *sql.DB, list []string, next func() bool) error {
	conn, err := db.Conn(tb.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := 0; next(); i++ {
		if i == len(list) {
			i = 0
		}
		if _, err := conn.ExecContext(tb.Context(), list[i], textArgs...); err != nil {
			return err
		}
	}
	return nil
}

// Once they are known, all texts hit.
func TestScaling(t *testing.T) {
	for _, s := range scaling {
		db, list := opened(t, wrappers[len(wrappers)-1]), numbered(execText(unprotected, small), s.texts)
		require.NoError(t, sendAll(t, db, list))
		stats, _ := fencerow.StatsOf(db)
		require.EqualValues(t, s.texts, stats.Checked-stats.CacheHits)
		require.NoError(t, sendAll(t, db, list))
		stats, _ = fencerow.StatsOf(db)
		require.EqualValues(t, s.texts, stats.CacheHits)
	}
}
