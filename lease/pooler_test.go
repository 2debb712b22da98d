package lease_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// pooler is a way to the server that tells the client a process id of its own,
// as poolers do.
func pooler(t *testing.T, config *pgx.ConnConfig) pgconn.DialFunc {
	t.Helper()
	dial, network, address := config.DialFunc, "", ""
	network, address = pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := dial(context.Background(), network, address)
			if err != nil {
				_ = client.Close()
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			})
			wg.Go(func() {
				_ = relay(client, server)
				_ = client.Close()
			})
		}
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
}

// relay passes what the server sends, with another process id in its
// BackendKeyData.
func relay(client io.Writer, server io.Reader) error {
	for {
		head := make([]byte, 5) // the message's type and its length
		if _, err := io.ReadFull(server, head); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return err
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, binary.BigEndian.Uint32(body)+1_000_000)
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return err
		}
	}
}
