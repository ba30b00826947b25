// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"time"

	"k8s.io/component-base/cli/flag"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/options"
)

// Options are the settings of the manager itself, and the controllers that it can
// run, each of which has its own settings. Each setting has one flag; options_groups.go
// has the flags, defaults and bounds of those that are declared here.
//
// [NewOptions] returns the defaults. The flags write into the Options that they
// come from, so these must not be copied.
type Options struct {
	// Kubeconfig is the file that says how to reach the API server. Empty means the
	// file that KUBECONFIG names, then ~/.kube/config, then the pod's service account.
	Kubeconfig string

	// KubeAPIQPS is the client's limit of requests per second. 0 means that it has
	// none, because the API server's priority and fairness limits it. Set it for an
	// API server that has that turned off.
	KubeAPIQPS float64

	// KubeAPIBurst is how many requests may go out at once above KubeAPIQPS, if that
	// is set.
	KubeAPIBurst int

	// NamespaceRequestsPerSecond is how many requests to the API server the objects of one
	// namespace may cause per second. A namespace that has used them up waits, and no other one
	// does. Raise it together with the restart budget, where one namespace has thousands of
	// workloads that are restarted at once.
	NamespaceRequestsPerSecond float64

	// NamespaceRequestsBurst is how many requests a namespace may cause at once, if it has caused
	// fewer than its share before.
	NamespaceRequestsBurst int

	// Controllers selects the controllers to run: "*" all that are on by default,
	// "nodepool" that one, "-nodepool" not that one. The first entry that matches a
	// controller counts.
	Controllers []string

	// Namespaces limits the controllers of namespaced objects to these namespaces, so
	// that they need rights in these only. The others are about the whole cluster.
	// Empty means all namespaces.
	Namespaces []string

	// ReconcileTimeout is how long a controller may work on one object at a time. Then
	// the attempt is cancelled, reported as an error and retried. Raise it for an API
	// server that takes longer than that to answer.
	ReconcileTimeout time.Duration

	// MetricsBindAddress is where /metrics is served, as host:port; "0" turns it off.
	MetricsBindAddress string

	// MetricsSecure serves metrics over HTTPS, only to clients authorized to GET
	// /metrics. Otherwise they are served over plain HTTP to every client.
	MetricsSecure bool

	// MetricsCertDir has the certificate and key of the metrics endpoint, which are
	// read again when they change. Empty means a self-signed certificate that is
	// created at start.
	MetricsCertDir string

	// MetricsCertName is the file name of the certificate in MetricsCertDir.
	MetricsCertName string

	// MetricsKeyName is the file name of the key in MetricsCertDir.
	MetricsKeyName string

	// HealthProbeBindAddress is where /healthz and /readyz are served, as host:port;
	// "0" turns them off.
	HealthProbeBindAddress string

	// PprofBindAddress is where Go profiles are served, as host:port, without any
	// authentication: bind it to a loopback address. "0" turns it off.
	PprofBindAddress string

	// LeaderElect lets several managers run, of which one is active. It is off by
	// default, so that a manager started by hand is active at once; the Deployment in
	// config/manager, which has two replicas, sets it.
	LeaderElect bool

	// LeaderElectNamespace is the namespace of the lease. Empty means the namespace of
	// the pod; outside a cluster it must be set.
	LeaderElectNamespace string

	// LeaseDuration is how long a standby waits after the leader's last renewal before
	// it takes over.
	LeaseDuration time.Duration

	// RenewDeadline is how long the leader tries to renew the lease before it gives up
	// and exits. It must be less than LeaseDuration.
	RenewDeadline time.Duration

	// RetryPeriod is the time between two attempts to acquire or renew the lease. A
	// standby adds a random time of up to 1.2 such periods, so that it takes over
	// within 2.2 of them after the leader has stopped in order: by default within two
	// seconds.
	RetryPeriod time.Duration

	// GracefulShutdownTimeout is how long running reconciles may take to end after a
	// signal to stop. Keep it below the pod's terminationGracePeriodSeconds.
	GracefulShutdownTimeout time.Duration

	// LogLevel is how much is logged: "error", "info" (0: what an operator must see),
	// "debug" (1: decisions), "trace" (2: the rest) or a number up to 9, at which
	// client-go logs each request.
	LogLevel string

	// LogFormat is "json", one object a line, or "text", for people.
	LogFormat string

	controllers []controller.Definition
	groups      []*options.Group
}

// NewOptions returns the controllers of this binary, and all options at their
// defaults.
func NewOptions() *Options {
	o := &Options{controllers: controllers()}
	o.groups = []*options.Group{o.clusterGroup(), o.controllersGroup()}
	for _, c := range o.controllers {
		if c.Options != nil {
			o.groups = append(o.groups, c.Options)
		}
	}
	o.groups = append(o.groups, o.electionGroup(), o.metricsGroup(), o.processGroup())
	return o
}

// Definitions returns the controllers that the manager can run.
func (o *Options) Definitions() []controller.Definition { return o.controllers }

// Flags returns one flag for each option, in the groups that --help shows.
func (o *Options) Flags() flag.NamedFlagSets {
	var sets flag.NamedFlagSets
	for _, g := range o.groups {
		sets.FlagSet(g.Name).AddFlagSet(g.Flags)
	}
	return sets
}

// Validate returns nil if the manager can be started with these options, else an
// error with one line for each flag that is wrong: its name, its value and what is
// allowed. It depends on nothing but the options.
func (o *Options) Validate() error {
	errs := make([]error, len(o.groups))
	for i, g := range o.groups {
		errs[i] = g.Validate()
	}
	return errors.Join(errs...)
}
