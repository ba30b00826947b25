// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/config"
	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// everyMinute is a ScheduledRestart with a tick every minute, so that a user soon sees a restart.
const everyMinute = `
---
apiVersion: tidekeeper.dev/v1
kind: ScheduledRestart
metadata: {namespace: shop, name: recommend}
spec:
  targetRef: {kind: Deployment, name: recommend}
  schedule: "* * * * *"
`

// trial starts the cluster, the manager and all sample objects without further steps. It does not
// need the source code.
func (d *demo) trial(ctx context.Context) error {
	start := time.Now()
	fmt.Println("Starting a Kubernetes control plane with five simulated nodes, and Tidekeeper ...")
	// kubectl and other clients cache the API server's discovery responses in this directory.
	if err := os.Setenv("KUBECACHEDIR", filepath.Join(d.dir, "cache")); err != nil {
		return err
	}
	crds, err := objects("crd/bases/*.yaml")
	if err != nil {
		return err
	}
	if d.sandbox, err = sandbox.Up(ctx, sandbox.Options{
		Binary: filepath.Join(d.bin, "sandbox"), Dir: d.dataDir(), Nodes: 5, Kubeconfig: d.kubeconfig(),
		Install: sandbox.Install{Objects: crds},
	}); err != nil {
		return err
	}
	if err := d.startManager(); err != nil {
		return err
	}
	manifests, err := trialWorld(time.Now())
	if err != nil {
		return err
	}
	if _, err := d.sandbox.Kubectl(ctx, manifests, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	if err := d.untilTheWorldShows(ctx); err != nil {
		return err
	}
	fmt.Printf("It is up after %.1f s: two node pools, four Deployments and a herd of %d, restarts that are due, late and frozen.\n", time.Since(start).Seconds(), restartsAtNight)
	return nil
}

// trialWorld returns manifests of nodes with roles, of the node pools, and of the objects from
// worldAt.
func trialWorld(now time.Time) (string, error) {
	paths, err := fs.Glob(config.Files, "samples/nodepool_*.yaml")
	if err != nil {
		return "", err
	}
	var parts []string
	for i, pool := range []string{"worker", "worker", "worker", "gpu", "gpu"} {
		parts = append(parts, fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: node-%d, labels: {%s: ''}}\n", i+1, role(pool)))
	}
	for _, path := range paths {
		text, err := config.Files.ReadFile(path)
		if err != nil {
			return "", err
		}
		parts = append(parts, string(text))
	}
	filled, err := worldAt(now)
	return strings.Join(append(parts, filled), "\n---\n") + everyMinute, err
}

// objects returns the objects in those embedded files of config/ whose paths match a pattern.
func objects(pattern string) ([]any, error) {
	paths, err := fs.Glob(config.Files, pattern)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, path := range paths {
		text, err := config.Files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, object)
	}
	return all, nil
}

// untilTheWorldShows waits until the node pools have their nodes and a restart waits for the
// Freeze.
func (d *demo) untilTheWorldShows(ctx context.Context) error {
	ctx, cancel := d.manager.Context(ctx)
	defer cancel()
	return sandbox.Wait(ctx, patience, "the pools have their nodes, and a restart waits for a freeze", func() error {
		for pool, nodes := range map[string]int32{"worker": 3, "gpu": 2} {
			p, err := d.pool(ctx, pool)
			if err != nil {
				return err
			}
			if p.Status.NodeCount != nodes {
				return fmt.Errorf("the pool %s has %d nodes", pool, p.Status.NodeCount)
			}
		}
		r := &tidekeeperv1.ScheduledRestart{}
		if err := d.read(ctx, r, "scheduledrestart", "ledger", "-n", "books"); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady); ready == nil || ready.Reason != tidekeeperv1.ReasonFrozen {
			return errors.New("the restart of books/ledger does not wait yet")
		}
		return nil
	})
}
