// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

//go:embed world.yaml
var world string

// restartsAtNight is the number of restarts that are due at the same time. It exceeds the number of
// slots in the manager's restart budget.
const restartsAtNight = 40

// worldStep fills the cluster with objects, so that each tab of the dashboard shows something.
var worldStep = step{"Something to look at", func(ctx context.Context, d *demo) error {
	if err := d.kubectl(ctx, "apply", "-f", "config/samples/nodepool_worker.yaml"); err != nil {
		return err
	}
	if err := d.untilPool(ctx, "worker", 2); err != nil {
		return err
	}
	manifests, err := worldAt(time.Now())
	if err != nil {
		return err
	}
	fmt.Println("$ kubectl apply -f -   # hack/demo/world.yaml")
	if _, err := d.sandbox.Kubectl(ctx, manifests, "apply", "-f", "-"); err != nil {
		return err
	}
	return d.until(ctx, "the restart of books/ledger waits for the Freeze month-end", func() error {
		r := &tidekeeperv1.ScheduledRestart{}
		if err := d.read(ctx, r, "scheduledrestart", "ledger", "-n", "books"); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
		if ready == nil {
			return errors.New("it has no status yet")
		}
		return equal(tidekeeperv1.ReasonFrozen, ready.Reason)
	})
}}

type worldDeployment struct {
	Namespace, Name, Pool, CPU, Memory string
	Replicas                           int
	Slow                               bool
}

// worldAt returns manifests of the namespaces, Deployments, ScheduledRestarts and the Freeze in
// world.yaml. The Freeze ends two hours after the given time.
func worldAt(now time.Time) (string, error) {
	data := struct {
		Namespaces, Night []string
		Deployments       []worldDeployment
		Now, Until        string
	}{
		Namespaces: []string{"shop", "books", "night"},
		Deployments: []worldDeployment{
			{Namespace: "shop", Name: "checkout", Pool: "worker", CPU: "3", Memory: "6Gi", Replicas: 7},
			{Namespace: "shop", Name: "search", Pool: "worker", CPU: "500m", Memory: "8Gi", Replicas: 4, Slow: true},
			{Namespace: "shop", Name: "recommend", Pool: "gpu", CPU: "4", Memory: "16Gi", Replicas: 3},
			{Namespace: "books", Name: "ledger", CPU: "1", Memory: "2Gi", Replicas: 2},
		},
		Now: now.UTC().Format(time.RFC3339), Until: now.Add(2 * time.Hour).UTC().Format(time.RFC3339),
	}
	for i := range restartsAtNight {
		name := fmt.Sprintf("batch-%02d", i+1)
		data.Night = append(data.Night, name)
		data.Deployments = append(data.Deployments, worldDeployment{Namespace: "night", Name: name, CPU: "50m", Memory: "64Mi", Replicas: 1})
	}
	t, err := template.New("world.yaml").Parse(world)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, data)
	return b.String(), err
}
