// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Options is what an operator of Tidekeeper can turn. Each field is one flag;
// the names of the flags are in flags.go. [DefaultOptions] gives the defaults.
type Options struct {
	// Kubeconfig is the file that says how to reach the API server. Default:
	// none, which means what KUBECONFIG names, then ~/.kube/config, then the
	// pod's service account. Set it to run outside a cluster.
	Kubeconfig string

	// KubeAPIQPS is the number of requests per second that the client allows
	// itself. Default 0: no limit of its own, as the API server's priority and
	// fairness limits us. Set it for an API server that has that turned off.
	KubeAPIQPS float64

	// KubeAPIBurst is how many requests may go out at once above KubeAPIQPS.
	// Default 100. It means nothing while KubeAPIQPS is 0.
	KubeAPIBurst int

	// Controllers names the controllers to run: "*" all that are on by
	// default, "nodepool" that one, "-nodepool" not that one. The first that
	// matches a controller counts. Default "*".
	Controllers []string

	// Namespaces limits scheduled-restart, restart-opt-in and pod-count to these
	// namespaces, in which alone they then need rights. The others are about the
	// whole cluster. Default: none, which means all namespaces.
	Namespaces []string

	// NodeConcurrency is how many nodes are brought into shape at the same
	// time. Default 32. Lower it if the API server suffers when a pool of
	// many nodes changes.
	NodeConcurrency int

	// StatusInterval is the shortest time between two writes of a pool's
	// status that only follow the water level; membership, readiness and
	// conditions are written at once. Default 5s. Raise it in large clusters
	// with much pod churn.
	StatusInterval time.Duration

	// NoExecuteShare is the share of a pool's nodes, in percent and at least
	// one node, that may get a new NoExecute taint in one NoExecuteInterval.
	// Such a taint evicts pods. Default 10.
	NoExecuteShare int

	// NoExecuteInterval is the time between two such shares. Default 30s.
	NoExecuteInterval time.Duration

	// RestartConcurrency is how many ScheduledRestarts are looked at in
	// parallel. Default 64.
	RestartConcurrency int

	// MaxConcurrentRestarts is how many restarts may be under way at once in
	// the cluster; others that are due wait, the earliest tick first. Default 20.
	MaxConcurrentRestarts int

	// RestartNamespaceShare is how many percent of them, and at least one, may
	// be of one namespace. Default 50.
	RestartNamespaceShare int

	// MetricsBindAddress is where /metrics is served, as host:port; "0" turns
	// it off. Default ":8443".
	MetricsBindAddress string

	// MetricsSecure serves metrics over HTTPS, and only to who has a token
	// that may get the URL /metrics. Default true. Without it they are plain
	// HTTP for everyone who reaches the port.
	MetricsSecure bool

	// MetricsCertDir holds the certificate and key of the metrics endpoint;
	// they are read again when they change. Default: none, which means a
	// self-signed certificate made at start.
	MetricsCertDir string

	// MetricsCertName is the certificate's file name in MetricsCertDir.
	// Default "tls.crt".
	MetricsCertName string

	// MetricsKeyName is the key's file name in MetricsCertDir. Default
	// "tls.key".
	MetricsKeyName string

	// HealthProbeBindAddress is where /healthz and /readyz are served, as
	// host:port; "0" turns them off. Default ":8081".
	HealthProbeBindAddress string

	// PprofBindAddress is where Go profiles are served, as host:port, without
	// any authentication: bind it to a loopback address. Default "0": off.
	PprofBindAddress string

	// LeaderElect lets several managers run, of which one acts. Default
	// false, so that a manager started by hand acts at once; the Deployment
	// in config/manager, which has two replicas, sets it.
	LeaderElect bool

	// LeaderElectNamespace is the namespace of the lease. Default: none,
	// which means the namespace of the pod; outside a cluster it must be set.
	LeaderElectNamespace string

	// LeaseDuration is how long a standby waits, after the leader was last
	// heard of, before it takes over. Default 15s.
	LeaseDuration time.Duration

	// RenewDeadline is how long the leader tries to renew the lease before it
	// gives up and ends. Must be below LeaseDuration. Default 10s.
	RenewDeadline time.Duration

	// RetryPeriod is the time between two tries to take or renew the lease. A
	// standby adds a random time of up to 1.2 such periods, so that it takes over
	// within 2.2 of them after the leader has stopped in order. Default 750ms:
	// within two seconds.
	RetryPeriod time.Duration

	// GracefulShutdownTimeout is how long running reconciles may take to end
	// after a signal to stop. Default 20s. Keep it below the pod's
	// terminationGracePeriodSeconds.
	GracefulShutdownTimeout time.Duration

	// LogLevel says how much is logged: "error", "info" (0: what an operator
	// must see), "debug" (1: decisions), "trace" (2: the rest) or a number up
	// to 9, from which on client-go logs each request. Default "info".
	LogLevel string

	// LogFormat is "json", one object a line, or "text", for people. Default
	// "json".
	LogFormat string
}

// DefaultOptions returns the default of each option.
func DefaultOptions() Options {
	return Options{
		KubeAPIBurst:            100,
		Controllers:             []string{"*"},
		NodeConcurrency:         32,
		StatusInterval:          5 * time.Second,
		NoExecuteShare:          10,
		NoExecuteInterval:       30 * time.Second,
		RestartConcurrency:      64,
		MaxConcurrentRestarts:   20,
		RestartNamespaceShare:   50,
		MetricsBindAddress:      ":8443",
		MetricsSecure:           true,
		MetricsCertName:         "tls.crt",
		MetricsKeyName:          "tls.key",
		HealthProbeBindAddress:  ":8081",
		PprofBindAddress:        "0",
		LeaseDuration:           15 * time.Second,
		RenewDeadline:           10 * time.Second,
		RetryPeriod:             750 * time.Millisecond,
		GracefulShutdownTimeout: 20 * time.Second,
		LogLevel:                "info",
		LogFormat:               "json",
	}
}

// Validate returns nil if the manager can be started with these options, else
// an error with one line for each flag that is wrong: its name, its value and
// what is allowed. It looks at nothing but the options.
func (o Options) Validate() error {
	_, controllersErr := chooseControllers(o.Controllers, allControllers)
	_, levelErr := parseLogLevel(o.LogLevel)
	return errors.Join(
		between(flagKubeAPIQPS, o.KubeAPIQPS, 0, 100_000),
		between(flagKubeAPIBurst, o.KubeAPIBurst, 1, 100_000),
		controllersErr,
		namespaces(flagNamespaces, o.Namespaces),
		between(flagNodeConcurrency, o.NodeConcurrency, 1, 1024),
		between(flagStatusInterval, o.StatusInterval, 100*time.Millisecond, time.Hour),
		between(flagNoExecuteShare, o.NoExecuteShare, 1, 100),
		between(flagNoExecuteInterval, o.NoExecuteInterval, 100*time.Millisecond, 24*time.Hour),
		between(flagRestartConcurrency, o.RestartConcurrency, 1, 1024),
		between(flagMaxConcurrentRestarts, o.MaxConcurrentRestarts, 1, 100_000),
		between(flagRestartNamespaceShare, o.RestartNamespaceShare, 1, 100),
		bindAddress(flagMetricsBindAddress, o.MetricsBindAddress),
		notEmpty(flagMetricsCertName, o.MetricsCertName),
		notEmpty(flagMetricsKeyName, o.MetricsKeyName),
		bindAddress(flagHealthProbeBindAddress, o.HealthProbeBindAddress),
		bindAddress(flagPprofBindAddress, o.PprofBindAddress),
		o.validateLeaderElection(),
		between(flagGracefulShutdownTimeout, o.GracefulShutdownTimeout, time.Second, time.Hour),
		levelErr,
		oneOf(flagLogFormat, o.LogFormat, logFormatJSON, logFormatText),
	)
}

// validateLeaderElection checks how the three durations stand to each other:
// a leader must have given up before a standby takes over, and must have had
// more than one try before it gives up.
func (o Options) validateLeaderElection() error {
	if err := errors.Join(
		between(flagLeaseDuration, o.LeaseDuration, time.Second, time.Hour),
		between(flagRenewDeadline, o.RenewDeadline, 500*time.Millisecond, time.Hour),
		between(flagRetryPeriod, o.RetryPeriod, 100*time.Millisecond, time.Hour),
	); err != nil {
		return err
	}
	var errs []error
	if o.RenewDeadline >= o.LeaseDuration {
		errs = append(errs, fmt.Errorf("--%s=%s: must be less than --%s, which is %s",
			flagRenewDeadline, o.RenewDeadline, flagLeaseDuration, o.LeaseDuration))
	}
	// client-go waits up to 1.2 retry periods between two tries.
	if o.RetryPeriod >= o.RenewDeadline*5/6 {
		errs = append(errs, fmt.Errorf("--%s=%s: must be less than 5/6 of --%s, which is %s",
			flagRetryPeriod, o.RetryPeriod, flagRenewDeadline, o.RenewDeadline))
	}
	return errors.Join(errs...)
}

func between[T cmp.Ordered](flag string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("--%s=%v: must be from %v to %v", flag, value, least, most)
}

func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("--%s=%q: must be one of %q", flag, value, allowed)
}

func namespaces(flag string, values []string) error {
	for _, value := range values {
		if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
			return fmt.Errorf("--%s=%s: %q is not the name of a namespace: %s", flag, strings.Join(values, ","), value, problems[0])
		}
	}
	return nil
}

func notEmpty(flag, value string) error {
	if value == "" {
		return fmt.Errorf("--%s=%q: must not be empty", flag, value)
	}
	return nil
}

func bindAddress(flag, value string) error {
	if value == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s=%q: must be host:port with a port from 0 to 65535, or \"0\" to turn it off", flag, value)
	}
	return nil
}
