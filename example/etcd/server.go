package main

import (
	"context"
	"errors"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startEtcd starts an etcd of one member in this process, on ports that the
// system chooses, with its data in dir. Close ends it.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// With no other member to hear of, it needn't wait a second to elect itself.
	cfg.TickMs, cfg.ElectionMs = 10, 100
	cfg.UnsafeNoFsync = true // dir is not kept
	// At level error it logs its own orderly end. What goes wrong comes back as
	// an error.
	cfg.LogLevel = "panic"

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err = <-server.Err():
	case <-server.Server.StopNotify():
		err = errors.New("etcd ended before it was ready")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return nil, err
}

// connect opens a client of the server.
func connect(server *embed.Etcd) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{server.Clients[0].Addr().String()},
		Logger:    zap.NewNop(),
	})
}
