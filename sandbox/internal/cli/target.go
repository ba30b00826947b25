// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

// target is the sandbox on which a command acts.
type target struct{ dataDir string }

// dir returns the directory of the sandbox.
func (s *target) dir() (cluster.Dir, error) {
	for _, dir := range []string{s.dataDir, os.Getenv(DataDirEnv)} {
		if dir != "" {
			return cluster.Abs(dir)
		}
	}
	return cluster.DefaultDir()
}

// logs returns the directory of the component logs, or "" if there is no data directory.
func (s *target) logs() string {
	dir, err := s.dir()
	if err != nil {
		return ""
	}
	return dir.Logs()
}

// running returns the directory and the status of the running sandbox, or an error if no sandbox is
// running.
func (s *target) running(ctx context.Context) (cluster.Dir, cluster.Status, error) {
	dir, err := s.dir()
	if err != nil {
		return dir, cluster.Status{}, err
	}
	status, err := dir.Control().Status(ctx)
	return dir, status, err
}

// client returns a client for the API server of the running sandbox.
func (s *target) client(ctx context.Context) (kubernetes.Interface, error) {
	dir, _, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	config, err := dir.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}

// withEtcd calls the function "do" with a client for the running sandbox's etcd. It first waits
// until the sandbox is ready, because a cluster's standard objects, such as its namespaces, do not
// exist before that.
func (s *target) withEtcd(ctx context.Context, do func(cluster.Dir, *clientv3.Client) error) (err error) {
	dir, status, err := s.running(ctx)
	if err == nil && !status.CameUp() {
		_, err = dir.Control().Await(ctx)
	}
	if err != nil {
		return err
	}
	etcd, err := dir.Etcd(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	return do(dir, etcd)
}
