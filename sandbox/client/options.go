// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options configure a new sandbox.
type Options struct {
	// Binary is the path of the sandbox program. The default is $SANDBOX_BIN, then "sandbox" in the
	// PATH, then a program that is built into the user's cache directory. The program is built from
	// the checkout at $SANDBOX_SOURCE or, if that is unset, from the sandbox module with the same
	// version as this module. The first build takes minutes; SANDBOX_BUILD=no disables it.
	Binary string
	// Dir is the data directory. The default is a new temporary directory, which Down removes.
	Dir string
	// Fresh removes the state of earlier runs from Dir.
	Fresh bool
	// Outlive keeps the sandbox running after this process exits. By default, the sandbox stops and
	// its directory is removed when this process exits, even if this process is killed.
	Outlive bool

	// Nodes is the minimum number of simulated nodes. 0 means 5; [NoNodes] means no nodes.
	Nodes int
	// RealNodes is the number of additional nodes that run real containers. Real nodes require root
	// and `make build-node`.
	RealNodes int
	// Delays overrides the delays of simulated pods.
	Delays map[Delay]time.Duration
	// NoPodEvents disables the Events that kubelets record about pods.
	NoPodEvents bool

	// Kubernetes is the Kubernetes release to run, such as 1.34, which must have been built with
	// `make build-kubernetes`.
	Kubernetes string
	// EmulatedVersion restricts the API server to the APIs and features of an older Kubernetes
	// release, such as 1.34.
	EmulatedVersion string
	// Audit logs every request to the API server to audit.log in the data directory.
	Audit bool
	// KeepHistory keeps every revision of every object in etcd. By default, etcd regularly discards
	// old revisions.
	KeepHistory bool
	// Kubeconfig is the path to which a copy of the administrator's kubeconfig is written. If it is
	// empty, there is no copy.
	Kubeconfig string

	// Install lists the objects to install in the new sandbox.
	Install Install

	// Args lists additional `sandbox up` flags, for programs that pass on their own arguments. They
	// take precedence over the fields above.
	Args []string
}

// NoNodes is the value of [Options.Nodes] for a sandbox without simulated nodes.
const NoNodes = -1

// Delay names a delay of simulated pods. docs/pods-and-nodes.md describes the delays.
type Delay string

// Delays of simulated pods.
const (
	InitializedAfter     Delay = "initialized-after"
	StartedAfter         Delay = "started-after"
	ContainersReadyAfter Delay = "containers-ready-after"
	SlowAfter            Delay = "slow-after"
	ReadyAfter           Delay = "ready-after"
	CrashAfter           Delay = "crash-after"
	CompletedAfter       Delay = "completed-after"
	TerminatedAfter      Delay = "terminated-after"
)

// args returns the `sandbox up` flags for these options.
func (o Options) args() []string {
	var args []string
	if o.Nodes != 0 {
		args = append(args, fmt.Sprintf("--nodes=%d", max(o.Nodes, 0)))
	}
	if o.RealNodes != 0 {
		args = append(args, fmt.Sprintf("--real-nodes=%d", o.RealNodes))
	}
	for _, delay := range slices.Sorted(maps.Keys(o.Delays)) {
		args = append(args, fmt.Sprintf("--pod-%s=%s", delay, o.Delays[delay]))
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{
		{o.Fresh, "--fresh"},
		{o.NoPodEvents, "--pod-events=false"},
		{o.Audit, "--audit"},
		{o.KeepHistory, "--keep-history"},
		{o.Kubernetes != "", "--kubernetes=" + o.Kubernetes},
		{o.EmulatedVersion != "", "--emulated-version=" + o.EmulatedVersion},
		{o.Kubeconfig != "", "--kubeconfig=" + o.Kubeconfig},
	} {
		if flag.set {
			args = append(args, flag.text)
		}
	}
	return append(args, o.Args...)
}
