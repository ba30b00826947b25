// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
)

// The names of the flags, as messages and documents use them. Where
// kube-controller-manager has the same flag it has the same name.
const (
	flagKubeconfig              = "kubeconfig"
	flagKubeAPIQPS              = "kube-api-qps"
	flagKubeAPIBurst            = "kube-api-burst"
	flagControllers             = "controllers"
	flagNamespaces              = "namespaces"
	flagNodeConcurrency         = "node-concurrency"
	flagStatusInterval          = "status-interval"
	flagNoExecuteShare          = "no-execute-share"
	flagNoExecuteInterval       = "no-execute-interval"
	flagRestartConcurrency      = "restart-concurrency"
	flagMaxConcurrentRestarts   = "max-concurrent-restarts"
	flagRestartNamespaceShare   = "restart-namespace-share"
	flagMetricsBindAddress      = "metrics-bind-address"
	flagMetricsSecure           = "metrics-secure"
	flagMetricsCertDir          = "metrics-cert-dir"
	flagMetricsCertName         = "metrics-cert-name"
	flagMetricsKeyName          = "metrics-key-name"
	flagHealthProbeBindAddress  = "health-probe-bind-address"
	flagPprofBindAddress        = "pprof-bind-address"
	flagLeaderElect             = "leader-elect"
	flagLeaderElectNamespace    = "leader-elect-resource-namespace"
	flagLeaseDuration           = "leader-elect-lease-duration"
	flagRenewDeadline           = "leader-elect-renew-deadline"
	flagRetryPeriod             = "leader-elect-retry-period"
	flagGracefulShutdownTimeout = "graceful-shutdown-timeout"
	flagLogLevel                = "log-level"
	flagLogFormat               = "log-format"
)

// Flags returns one flag for each option, in the groups that --help shows. The
// flags write into o; what o holds now are their defaults.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets

	cluster := sets.FlagSet("cluster")
	cluster.StringVar(&o.Kubeconfig, flagKubeconfig, o.Kubeconfig,
		"`file` that says how to reach the API server (default: $KUBECONFIG, then ~/.kube/config, then the pod's service account)")
	cluster.Float64Var(&o.KubeAPIQPS, flagKubeAPIQPS, o.KubeAPIQPS,
		"requests per second to the API server; 0 leaves the limit to its priority and fairness")
	cluster.IntVar(&o.KubeAPIBurst, flagKubeAPIBurst, o.KubeAPIBurst,
		"requests that may go out at once above --"+flagKubeAPIQPS+", if that is set")

	controllers := sets.FlagSet("controllers")
	controllers.StringSliceVar(&o.Controllers, flagControllers, o.Controllers,
		fmt.Sprintf("controllers to run: '*' all that are on by default, 'foo' that one, '-foo' not that one. There are: %s",
			strings.Join(controllerNames(allControllers), ", ")))
	controllers.StringSliceVar(&o.Namespaces, flagNamespaces, o.Namespaces,
		fmt.Sprintf("namespaces that %s are limited to (default: all). The others are about the whole cluster",
			strings.Join(limitedNames(allControllers), ", ")))

	nodePools := sets.FlagSet("node pools")
	nodePools.IntVar(&o.NodeConcurrency, flagNodeConcurrency, o.NodeConcurrency,
		"nodes that are brought into shape at the same time")
	nodePools.DurationVar(&o.StatusInterval, flagStatusInterval, o.StatusInterval,
		"shortest time between two status writes that only follow a pool's water level")
	nodePools.IntVar(&o.NoExecuteShare, flagNoExecuteShare, o.NoExecuteShare,
		"share of a pool's nodes, in `percent`, that may get a new NoExecute taint at a time; at least one node")
	nodePools.DurationVar(&o.NoExecuteInterval, flagNoExecuteInterval, o.NoExecuteInterval,
		"time between two such shares")

	restarts := sets.FlagSet("scheduled restarts")
	restarts.IntVar(&o.RestartConcurrency, flagRestartConcurrency, o.RestartConcurrency,
		"scheduled restarts that are looked at in parallel")
	restarts.IntVar(&o.MaxConcurrentRestarts, flagMaxConcurrentRestarts, o.MaxConcurrentRestarts,
		"restarts that may be under way at once; others that are due wait, the earliest tick first")
	restarts.IntVar(&o.RestartNamespaceShare, flagRestartNamespaceShare, o.RestartNamespaceShare,
		"share of them, in `percent`, that may be of one namespace; at least one")

	election := sets.FlagSet("leader election")
	election.BoolVar(&o.LeaderElect, flagLeaderElect, o.LeaderElect,
		"let several managers run, of which one acts")
	election.StringVar(&o.LeaderElectNamespace, flagLeaderElectNamespace, o.LeaderElectNamespace,
		"`namespace` of the lease "+leaseName+" (default: the namespace of the pod)")
	election.DurationVar(&o.LeaseDuration, flagLeaseDuration, o.LeaseDuration,
		"how long a standby waits, after the leader was last heard of, before it takes over")
	election.DurationVar(&o.RenewDeadline, flagRenewDeadline, o.RenewDeadline,
		"how long the leader tries to renew the lease before it gives up and ends")
	election.DurationVar(&o.RetryPeriod, flagRetryPeriod, o.RetryPeriod,
		"time between two tries to take or renew the lease")

	metrics := sets.FlagSet("metrics")
	metrics.StringVar(&o.MetricsBindAddress, flagMetricsBindAddress, o.MetricsBindAddress,
		"`host:port` that serves /metrics; 0 turns it off")
	metrics.BoolVar(&o.MetricsSecure, flagMetricsSecure, o.MetricsSecure,
		"serve metrics over HTTPS, to tokens that may get the URL /metrics; otherwise over HTTP, to everyone")
	metrics.StringVar(&o.MetricsCertDir, flagMetricsCertDir, o.MetricsCertDir,
		"`directory` with the certificate and key for that (default: a self-signed certificate made at start)")
	metrics.StringVar(&o.MetricsCertName, flagMetricsCertName, o.MetricsCertName,
		"`file` name of the certificate in that directory")
	metrics.StringVar(&o.MetricsKeyName, flagMetricsKeyName, o.MetricsKeyName,
		"`file` name of the key in that directory")

	process := sets.FlagSet("process")
	process.StringVar(&o.HealthProbeBindAddress, flagHealthProbeBindAddress, o.HealthProbeBindAddress,
		"`host:port` that serves /healthz and /readyz; 0 turns it off")
	process.StringVar(&o.PprofBindAddress, flagPprofBindAddress, o.PprofBindAddress,
		"`host:port` that serves Go profiles to everyone; 0 turns it off")
	process.DurationVar(&o.GracefulShutdownTimeout, flagGracefulShutdownTimeout, o.GracefulShutdownTimeout,
		"how long running work may take to end after a signal to stop")
	process.StringVar(&o.LogLevel, flagLogLevel, o.LogLevel,
		"how much to log: `level` error, info, debug, trace, or a number from 0 (info) to 9 (every API request and more)")
	process.StringVar(&o.LogFormat, flagLogFormat, o.LogFormat,
		"`format` of the log: json or text")

	return sets
}
