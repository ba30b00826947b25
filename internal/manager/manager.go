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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/optional"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/cache/readback"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/kube/event"
	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/manager/preflight"
	"tidekeeper.dev/tidekeeper/internal/version"
)

// namespaceFile contains the namespace of the pod. It exists in every pod with a service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Run runs the manager until ctx is canceled. It returns nil after an orderly stop. Each line of
// its error names a problem and the solution, for the administrator who started the manager.
func Run(ctx context.Context, opts *Options) error {
	return RunWithClock(ctx, opts, clock.RealClock{})
}

// RunWithClock is [Run] with a clock other than the machine's. Tests use it to set the time, or to
// run several managers with different clocks.
func RunWithClock(ctx context.Context, opts *Options, c clock.Clock) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	chosen, err := opts.selection()
	if err != nil {
		return err
	}
	if err := setLogger(os.Stderr, opts); err != nil {
		return err
	}
	cfg, err := opts.RESTConfig()
	if err != nil {
		return err
	}
	if err := runPreflight(ctx, cfg, opts, chosen); err != nil {
		return err
	}
	mgr, err := newManager(cfg, opts, chosen, c)
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting Tidekeeper", "version", version.String(), "server", cfg.Host,
		"controllers", namesOf(chosen.controllers), "leaderElection", opts.LeaderElect)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager stopped: %w", err)
	}
	return nil
}

// New returns the manager that [Run] would start, for tests that inspect it. There can be only one
// manager per process, because the names of controllers and metrics must be unique.
func New(cfg *rest.Config, opts *Options, c clock.Clock) (ctrl.Manager, error) {
	chosen, err := opts.selection()
	if err != nil {
		return nil, err
	}
	return newManager(cfg, opts, chosen, c)
}

// Preflight checks that the cluster meets the requirements of a manager with the given options. Its
// error names the unmet requirements and the solution.
func Preflight(ctx context.Context, cfg *rest.Config, opts *Options) error {
	chosen, err := opts.selection()
	if err != nil {
		return err
	}
	return runPreflight(ctx, cfg, opts, chosen)
}

func runPreflight(ctx context.Context, cfg *rest.Config, opts *Options, chosen *selection) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	required := preflight.Requirements{Scheme: scheme}
	for _, w := range chosen.watches {
		required.Kinds = append(required.Kinds, preflight.Kind{Object: w.object, Namespaces: w.namespaces, Optional: w.optional})
	}
	if opts.LeaderElect {
		namespace, err := leaseNamespace(opts)
		if err != nil {
			return err
		}
		required.Lease = &preflight.Lease{Namespace: namespace, Name: lease.Name, NamespaceFlag: FlagLeaderElectNamespace}
	}
	return preflight.Check(ctx, cfg, required)
}

// newManager returns a manager with the chosen controllers, which all use clk. It sends no requests
// to the cluster.
func newManager(cfg *rest.Config, opts *Options, chosen *selection, clk clock.Clock) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	metrics, err := metricsOptions(opts)
	if err != nil {
		return nil, err
	}

	shares := fairness.New(fairness.Limits{PerSecond: opts.NamespaceRequestsPerSecond, Burst: opts.NamespaceRequestsBurst}, clk)
	if err := ctrlmetrics.Registry.Register(shares); err != nil {
		return nil, fmt.Errorf("register the metrics of namespaces: %w", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(shares.Transport)
	lock, err := newLock(cfg, opts, publishedSettings(chosen.controllers))
	if err != nil {
		return nil, err
	}
	memory, workloads := newMemoryLimiter(), &podcache.Workloads{}
	content := podcache.Content{Listing: memory.limit}
	if opts.VerifyDecoding {
		// Do not limit the memory while pods are listed: to verify the cache's decoding, client-go
		// decodes complete objects, which need more memory than the limit allows.
		content = podcache.Content{Verify: clk}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions(chosen.watches),
		// A manager that is limited to some namespaces has no right to watch CRDs, so its cache
		// polls the API server for new kinds instead.
		NewCache: newCache(chosen.watches, optional.NewCache(optionalKinds(chosen.watches), len(opts.Namespaces) == 0),
			content, workloads, ctrlmetrics.Registry),
		// Optional kinds are unstructured objects, which the client would otherwise not read from
		// the cache.
		Client: client.Options{FieldOwner: "tidekeeper", Cache: &client.CacheOptions{Unstructured: true}},
		// A reconcile after a write must see the write. Otherwise it would decide on stale state
		// and write again.
		NewClient: newClient,
		Controller: config.Controller{
			// A standby runs the watches of its controllers, so that the cache and the state that
			// controllers derive from it are complete when the standby becomes the leader.
			EnableWarmup: new(true),
			// A reconcile that takes too long must be canceled, so that its worker becomes free for
			// other objects.
			ReconciliationTimeout: opts.ReconcileTimeout,
		},

		Metrics:                metrics,
		HealthProbeBindAddress: opts.HealthProbeBindAddress,
		PprofBindAddress:       opts.PprofBindAddress,

		LeaderElection:                      opts.LeaderElect,
		LeaderElectionID:                    lease.Name,
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &opts.LeaseDuration,
		RenewDeadline:                       &opts.RenewDeadline,
		RetryPeriod:                         &opts.RetryPeriod,
		// Releasing the lease is safe only because the process exits as soon as the manager has
		// stopped: Run does nothing after Start.
		LeaderElectionReleaseOnCancel: true,

		GracefulShutdownTimeout: &opts.GracefulShutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(lock.LockConfig.Identity) //nolint:staticcheck // client-go's leader election accepts no other kind of recorder.

	informers, err := addInformers(mgr, chosen.watches)
	if err != nil {
		return nil, err
	}
	for _, index := range chosen.indexes {
		if err := index.AddTo(context.Background(), mgr.GetFieldIndexer()); err != nil {
			return nil, err
		}
	}
	shared := sharingManager{mgr, event.NewRecorder(shares.Recorder(mgr.GetEventRecorder("tidekeeper")), scheme, clk), workloads, shares, opts.Namespaces}
	for _, c := range chosen.controllers {
		if err := c.SetupWithManager(shared, clk); err != nil {
			return nil, fmt.Errorf("set up the controller %s: %w", c.Name, err)
		}
	}
	if err := mgr.Add(memory); err != nil {
		return nil, fmt.Errorf("set up the release of memory: %w", err)
	}
	return mgr, addProbes(mgr, informers)
}

// sharingManager is a manager with components that all controllers share: an event recorder, the
// queries of pods by workload, and the record of the requests that each namespace causes.
type sharingManager struct {
	ctrl.Manager
	recorder  *event.Recorder
	workloads *podcache.Workloads
	shares    *fairness.Shares
	// namespaces lists the namespaces in --namespaces. If it is empty, the manager reads all
	// namespaces.
	namespaces []string
}

// Reads reports whether the manager reads a namespace's objects: --namespaces is empty or lists the
// namespace.
func (m sharingManager) Reads(namespace string) bool {
	return len(m.namespaces) == 0 || slices.Contains(m.namespaces, namespace)
}

// Shares returns the record of the requests that each namespace causes.
func (m sharingManager) Shares() *fairness.Shares { return m.shares }

// PodsByWorkload returns the Workloads with which controllers query the cached pods of a workload.
func (m sharingManager) PodsByWorkload() *podcache.Workloads { return m.workloads }

// GetEventRecorder returns the event recorder that all controllers share.
func (m sharingManager) GetEventRecorder(string) recorder.EventRecorder { return m.recorder }

// newClient returns a client that reads from the cache, but never returns an object older than the
// client's own last write.
func newClient(cfg *rest.Config, options client.Options) (client.Client, error) {
	inner, err := client.New(cfg, options)
	if err != nil {
		return nil, err
	}
	live, err := client.New(cfg, client.Options{HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper})
	if err != nil {
		return nil, err
	}
	return readback.New(inner, live, ctrlmetrics.Registry)
}

// newScheme returns a scheme with all kinds that the manager uses.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), tidekeeperv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return scheme, nil
}

// addInformers starts an informer for each watched kind, and returns the informers keyed by kind.
func addInformers(mgr ctrl.Manager, watches []watchedKind) (map[string]cache.Informer, error) {
	informers := map[string]cache.Informer{}
	for _, w := range watches {
		gvk, err := mgr.GetClient().GroupVersionKindFor(w.object)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", w.object, err)
		}
		informer, err := mgr.GetCache().GetInformer(context.Background(), w.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("get the informer of %s: %w", gvk.Kind, err)
		}
		informers[gvk.GroupKind().String()] = informer
	}
	return informers, nil
}

// addProbes adds the probe endpoints. /healthz succeeds while the process serves HTTP. /readyz
// succeeds once the cache has synced; this includes a standby, so that a rollout does not wait for
// the pod to become the leader.
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
		return fmt.Errorf("add the probes: %w", err)
	}
	return nil
}

func metricsOptions(opts *Options) (metricsserver.Options, error) {
	metrics := metricsserver.Options{BindAddress: opts.MetricsBindAddress}
	if !opts.MetricsSecure {
		return metrics, nil
	}
	metrics.SecureServing = true
	metrics.FilterProvider = filters.WithAuthenticationAndAuthorization

	// If no certificate were read, the server would create a self-signed certificate, which is not
	// intended when --metrics-cert-dir is set.
	if opts.MetricsCertDir != "" && opts.MetricsBindAddress != "0" {
		files, err := readCertificate(filepath.Join(opts.MetricsCertDir, opts.MetricsCertName),
			filepath.Join(opts.MetricsCertDir, opts.MetricsKeyName), time.Now)
		if err != nil {
			return metrics, fmt.Errorf("--%s=%s: %w", flagMetricsCertDir, opts.MetricsCertDir, err)
		}
		metrics.TLSOpts = append(metrics.TLSOpts, func(config *tls.Config) { config.GetCertificate = files.get })
	}
	return metrics, nil
}
