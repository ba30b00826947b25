// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
)

// settings holds the ports of the last run. The next run tries to use the same ports, so that
// existing kubeconfigs stay valid.
type settings struct {
	APIServerPort int `json:"apiServerPort,omitempty"`
	EtcdPort      int `json:"etcdPort,omitempty"`
}

// apiServer returns the URL of the API server.
func (s settings) apiServer() string { return "https://" + s.hostPort() }

func (s settings) hostPort() string {
	return fmt.Sprintf("%s:%d", ports.Loopback, s.APIServerPort)
}

// etcd returns the URL of etcd.
func (s settings) etcd() string { return fmt.Sprintf("https://%s:%d", ports.Loopback, s.EtcdPort) }

// settingsFile stores the settings between runs.
type settingsFile struct{ dir Dir }

func (f settingsFile) name() string { return f.dir.path("sandbox.json") }

func (f settingsFile) load() (settings, error) {
	var s settings
	buf, err := os.ReadFile(f.name())
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("there is no sandbox in %s: start one with 'sandbox up', or say where it is with --data-dir", f.dir)
	} else if err != nil {
		return s, err
	}
	if err := json.Unmarshal(buf, &s); err != nil {
		return s, fmt.Errorf("%s is damaged (%w): start over with 'sandbox up --fresh'", f.name(), err)
	}
	return s, nil
}

func (f settingsFile) save(s settings) error {
	buf, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(f.name(), buf, 0o600)
}
