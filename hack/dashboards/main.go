// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the Grafana dashboards in config/monitoring. make generate runs it in
// the root of the repository.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := filepath.Join("config", "monitoring", "dashboards")
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	for _, d := range []dashboard{fleet, manager} {
		text, err := json.MarshalIndent(d.grafana(), "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, d.uid+".json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}
