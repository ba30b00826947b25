// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// makePod creates the operator's Pod in the prepared state, modeled on the Deployment or
// StatefulSet that uses the operator's account, and directs the API server's webhook calls to this
// Pod. If the workload has no nodes, it does nothing.
func (l *Lab) makePod(ctx context.Context, s *Sandbox, command []string) error {
	if *l.workload.Nodes == 0 {
		return nil
	}
	o := incluster.Options{Config: s.Config, Program: command, From: l.from}
	o.ServiceAccount = types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: defaultAccount}
	if namespace, name, named := strings.Cut(l.account, "/"); named {
		o.ServiceAccount = types.NamespacedName{Namespace: namespace, Name: name}
	}
	pod, environment, warning, err := incluster.MakePod(ctx, o)
	if err != nil && ctx.Err() == nil {
		// Without a Pod, the operator runs as if it were outside the cluster.
		l.Warnings = append(l.Warnings, fmt.Sprintf("the operator has no Pod, and its webhooks are not served: %v", err))
		return nil
	}
	if err != nil {
		return err
	}
	if warning != nil {
		l.Warnings = append(l.Warnings, fmt.Sprintf("the operator does not have the environment of the container in %s: %v", l.from, warning))
	}
	l.environment, l.hostName = environment, pod.Name
	l.served, err = incluster.ServeWebhooks(ctx, s.Config, pod, l.certs())
	return err
}

// certs returns the directory of the webhooks' serving certificate.
func (l *Lab) certs() string { return filepath.Join(l.dir, "certs") }

// unserved adds a warning for each webhook whose Service does not select the operator's Pod.
func (l *Lab) unserved(ctx context.Context, client dynamic.Interface) error {
	called, err := incluster.CalledServices(ctx, client)
	if err != nil {
		return err
	}
	maps.DeleteFunc(called, func(service types.NamespacedName, _ string) bool { return l.served[service] && !l.Alone })
	for _, service := range slices.SortedFunc(maps.Keys(called), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		l.Warnings = append(l.Warnings, fmt.Sprintf("a webhook of %s calls the Service %s, which no one serves here: leave it out of what is installed", called[service], service))
	}
	return nil
}

// pod returns an environment that lets an operator process run like a container in a pod, and
// writes the files of the operator's ServiceAccount to `dir`. `server` is the URL of the API
// server.
func (l *Lab) pod(dir string, files incluster.Files, server string) (*incluster.Pod, error) {
	p := &incluster.Pod{Files: dir, Server: server, HostName: l.hostName, HostNetwork: l.workload.HostNetwork, Ports: l.workload.Ports()}
	if len(l.served) > 0 {
		p.CertDir, p.ServingCerts = l.certs(), incluster.DefaultCertDir()
	}
	return p, files.Write(p.Files)
}
