// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/version"
)

// leaseName is the name of the Lease that managers elect their leader with.
const leaseName = "tidekeeper"

// namespaceFile exists in every pod that has a service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Run runs the manager until ctx is cancelled, and returns nil if it then
// stopped in order. An error's text is meant for the person who started it:
// each of its lines says what is wrong and what to do.
func Run(ctx context.Context, opts Options) error {
	return RunWithClock(ctx, opts, clock.RealClock{})
}

// RunWithClock is [Run] by another clock than that of the machine, for tests of
// what happens when a clock is set or differs from another's.
func RunWithClock(ctx context.Context, opts Options, c clock.Clock) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	if err := setLogger(os.Stderr, opts); err != nil {
		return err
	}
	cfg, err := LoadConfig(opts)
	if err != nil {
		return err
	}
	if err := Preflight(ctx, cfg, opts); err != nil {
		return err
	}
	mgr, err := New(cfg, opts, c)
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting Tidekeeper", "version", version.String(), "server", cfg.Host,
		"controllers", opts.Controllers, "leaderElection", opts.LeaderElect)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager stopped: %w", err)
	}
	return nil
}

// New puts a manager together, with the controllers that opts choose. It does
// not talk to the cluster yet. The controllers go by the clock.
func New(cfg *rest.Config, opts Options, clk clock.Clock) (ctrl.Manager, error) {
	chosen, err := chooseControllers(opts.Controllers, allControllers)
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	metrics, err := metricsOptions(opts)
	if err != nil {
		return nil, err
	}

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:   scheme,
		NewCache: newClosedCache(chosen),
		Cache:    cacheOptions(chosen, opts.Namespaces),
		Client: client.Options{
			FieldOwner: "tidekeeper",
			Cache: &client.CacheOptions{
				// A reconcile that follows a write must see it, else it would
				// decide on the past and write again.
				EnableReadYourWritesConsistency: new(true),
			},
		},
		Controller: config.Controller{
			// A standby keeps its informers and models up to date, and takes
			// over with full ones.
			EnableWarmup: new(true),
		},

		Metrics:                metrics,
		HealthProbeBindAddress: opts.HealthProbeBindAddress,
		PprofBindAddress:       opts.PprofBindAddress,

		LeaderElection:          opts.LeaderElect,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: opts.LeaderElectNamespace,
		LeaseDuration:           &opts.LeaseDuration,
		RenewDeadline:           &opts.RenewDeadline,
		RetryPeriod:             &opts.RetryPeriod,
		// Safe only because the process ends as soon as the manager has
		// stopped: Run does nothing after Start.
		LeaderElectionReleaseOnCancel: true,

		GracefulShutdownTimeout: &opts.GracefulShutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}

	informers, err := addInformers(mgr, chosen)
	if err != nil {
		return nil, err
	}
	for _, addIndex := range indexesOf(chosen) {
		if err := addIndex(context.Background(), mgr.GetFieldIndexer()); err != nil {
			return nil, err
		}
	}
	for _, c := range chosen {
		if err := c.setup(mgr, opts, clk); err != nil {
			return nil, fmt.Errorf("setting up the controller %s: %w", c.name, err)
		}
	}
	if err := mgr.Add(giveBack{}); err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	return mgr, addProbes(mgr, informers)
}

// newScheme returns the kinds that this binary knows.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), tidekeeperv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("putting the scheme together: %w", err)
	}
	return scheme, nil
}

// addInformers has the cache start an informer for each kind that the
// controllers watch, and returns these informers by kind.
func addInformers(mgr ctrl.Manager, controllers []controller) (map[string]cache.Informer, error) {
	informers := map[string]cache.Informer{}
	for _, object := range kindsOf(controllers) {
		gvk, err := mgr.GetClient().GroupVersionKindFor(object)
		if err != nil {
			return nil, fmt.Errorf("%T: %w", object, err)
		}
		informer, err := mgr.GetCache().GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("the informer of %s: %w", gvk.Kind, err)
		}
		informers[gvk.GroupKind().String()] = informer
	}
	return informers, nil
}

// addProbes adds /healthz, which answers as long as the process serves HTTP,
// and /readyz, which answers once the cache is full. A standby is ready too,
// so that a rollout does not wait for it to become the leader.
func addProbes(mgr ctrl.Manager, informers map[string]cache.Informer) error {
	synced := func(*http.Request) error {
		for kind, informer := range informers {
			if !informer.HasSynced() {
				return fmt.Errorf("the cache of %s is not synced", kind)
			}
		}
		return nil
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced)); err != nil {
		return fmt.Errorf("adding the probes: %w", err)
	}
	return nil
}

func metricsOptions(opts Options) (metricsserver.Options, error) {
	metrics := metricsserver.Options{BindAddress: opts.MetricsBindAddress}
	if !opts.MetricsSecure {
		return metrics, nil
	}
	metrics.SecureServing = true
	metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	metrics.CertDir = opts.MetricsCertDir
	metrics.CertName = opts.MetricsCertName
	metrics.KeyName = opts.MetricsKeyName

	// The server takes a self-signed certificate if it finds no other, which
	// is not what somebody who names a directory asks for.
	if opts.MetricsCertDir != "" && opts.MetricsBindAddress != "0" {
		cert := filepath.Join(opts.MetricsCertDir, opts.MetricsCertName)
		key := filepath.Join(opts.MetricsCertDir, opts.MetricsKeyName)
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			return metrics, fmt.Errorf("--%s=%s: %w", flagMetricsCertDir, opts.MetricsCertDir, err)
		}
	}
	return metrics, nil
}

// leaseNamespace returns the namespace of the lease: the one that opts name, or
// the pod's own. It is empty if no leader is elected.
func leaseNamespace(opts Options) (string, error) {
	if !opts.LeaderElect || opts.LeaderElectNamespace != "" {
		return opts.LeaderElectNamespace, nil
	}
	namespace, err := os.ReadFile(namespaceFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("--%s: outside a cluster it needs --%s too", flagLeaderElect, flagLeaderElectNamespace)
	case err != nil:
		return "", fmt.Errorf("the namespace of this pod: %w", err)
	}
	return strings.TrimSpace(string(namespace)), nil
}
