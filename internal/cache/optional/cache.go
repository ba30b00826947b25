// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// retryInterval is the pause before failed discovery requests are retried.
	retryInterval = 10 * time.Second
	// pollInterval is the interval at which discovery requests are sent if the CRDs of optional
	// kinds are not watched.
	pollInterval = 30 * time.Second
	// checkTimeout is the timeout of a discovery request.
	checkTimeout = 10 * time.Second
)

// Kind configures an optional kind of a [Cache]: a kind whose CRD may be installed or removed while
// the manager runs.
type Kind struct {
	// Object is an empty object whose Go type selects the kind.
	Object client.Object
	// Config holds the kind's cache options, as in [cache.Options.ByObject].
	Config cache.ByObject
}

// Cache is a cache with optional kinds, whose CRDs need not be installed. It reads each optional
// kind from a separate cache, and all other kinds from an inner cache.
type Cache struct {
	cache.Cache
	scheme *runtime.Scheme
	server discovery.ServerResourcesInterface
	// crds watches the CRDs of the optional kinds. It is nil if CRDs are not watched.
	crds  *crds
	kinds map[schema.GroupVersionKind]*kind
	// wake holds an element if the CRD of an optional kind may have been installed or removed since
	// the last discovery request.
	wake chan struct{}
	// checked is closed once it is known, for every optional kind, whether the cluster serves the
	// kind.
	checked chan struct{}
}

// NewCache returns a constructor for manager.Options.NewCache. The constructed cache has the given
// optional kinds. If watchCRDs is set, the cache watches the CRDs of these kinds, which requires
// the right to watch them. Otherwise it sends discovery requests twice a minute, which requires no
// additional rights.
func NewCache(kinds []Kind, watchCRDs bool) cache.NewCacheFunc {
	return func(cfg *rest.Config, options cache.Options) (cache.Cache, error) {
		inner, err := cache.New(cfg, options)
		if err != nil {
			return nil, err
		}
		cfg = rest.CopyConfig(cfg)
		asking := rest.CopyConfig(cfg)
		asking.Timeout = checkTimeout
		server, err := discovery.NewDiscoveryClientForConfig(asking)
		if err != nil {
			return nil, fmt.Errorf("discover optional kinds: %w", err)
		}
		c := &Cache{
			Cache: inner, scheme: options.Scheme, server: server, kinds: map[schema.GroupVersionKind]*kind{},
			wake: make(chan struct{}, 1), checked: make(chan struct{}),
		}
		var names []string
		for _, k := range kinds {
			gvk, err := apiutil.GVKForObject(k.Object, options.Scheme)
			if err != nil {
				return nil, fmt.Errorf("find the kind of %T: %w", k.Object, err)
			}
			c.kinds[gvk] = newKind(gvk, k.Object, c.checked, func() (cache.Cache, error) {
				own := options
				own.ByObject = map[client.Object]cache.ByObject{k.Object: k.Config}
				own.DefaultWatchErrorHandler = c.watchFailed
				return cache.New(cfg, own)
			})
			names = append(names, CRDName(gvk))
		}
		if watchCRDs {
			if c.crds, err = newCRDs(cfg, names); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
}

// watchFailed logs the watch error of an optional kind. If the error shows that the cluster no
// longer serves the kind, it also triggers a discovery request.
func (c *Cache) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	if !apierrors.IsNotFound(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	ctrl.LoggerFrom(ctx).V(1).Info("The watch of an optional kind has ended", "error", err.Error())
	c.changed()
}

// changed makes [Cache.follow] send discovery requests for all optional kinds.
func (c *Cache) changed() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Start implements [cache.Informers].
func (c *Cache) Start(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.follow(ctx)
	}()
	err := c.Cache.Start(ctx)
	<-done
	return err
}

// follow watches each optional kind while the cluster serves it.
func (c *Cache) follow(ctx context.Context) {
	if len(c.kinds) == 0 {
		close(c.checked)
		<-ctx.Done()
		return
	}
	var watching sync.WaitGroup
	interval := pollInterval
	if c.crds != nil {
		interval = 0
		watching.Go(func() { c.crds.watch(ctx, c.changed) })
	}
	follow(ctx, c.wake, interval, func(ctx context.Context) bool {
		answered := c.check(ctx)
		if answered && !isClosed(c.checked) {
			close(c.checked)
		}
		return answered
	})
	watching.Wait()
	for _, k := range c.kinds {
		k.stop()
	}
}

// check sends discovery requests for the optional kinds, and starts or stops their watches. It
// reports whether all requests have succeeded and all necessary watches were started. If the
// request for a kind fails, the watch of the kind is neither started nor stopped.
func (c *Cache) check(ctx context.Context) bool {
	log := ctrl.LoggerFrom(ctx).WithName("optional-kinds")
	answered := true
	served := map[schema.GroupVersion]map[string]bool{}
	for gvk, k := range c.kinds {
		gv := gvk.GroupVersion()
		if served[gv] == nil {
			list, err := c.server.ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) {
				log.V(1).Info("Cannot determine whether the cluster serves a kind", "groupVersion", gv, "error", err.Error())
				answered = false
				continue
			}
			served[gv] = map[string]bool{}
			if list != nil {
				for _, r := range list.APIResources {
					if !strings.Contains(r.Name, "/") {
						served[gv][r.Kind] = true
					}
				}
			}
		}
		switch running := k.isRunning(); {
		case served[gv][gvk.Kind] && !running:
			log.Info("The cluster serves an optional kind: watching it", "kind", gvk.Kind, "groupVersion", gv)
			if err := k.start(ctx); err != nil {
				log.Error(err, "Cannot watch an optional kind", "kind", gvk.Kind, "groupVersion", gv)
				answered = false
			}
		case !served[gv][gvk.Kind] && running:
			log.Info("The cluster no longer serves an optional kind", "kind", gvk.Kind, "groupVersion", gv)
			k.stop()
		}
	}
	return answered
}

// WaitForCacheSync implements [cache.Informers].
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	if !c.Cache.WaitForCacheSync(ctx) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.checked:
	}
	for _, k := range c.kinds {
		if !k.waitForSync(ctx) {
			return false
		}
	}
	return true
}

// Get implements [client.Reader].
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	reader, err := c.readerOf(object, "")
	if err != nil {
		return err
	}
	return reader.Get(ctx, key, object, opts...)
}

// List implements [client.Reader].
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	reader, err := c.readerOf(list, "List")
	if err != nil {
		return err
	}
	return reader.List(ctx, list, opts...)
}

// readerOf returns the cache of an object's kind. For a list of objects, suffix must be "List", so
// that the kind of the items is determined from the kind of the list. For a single object, it must
// be empty.
func (c *Cache) readerOf(object runtime.Object, suffix string) (client.Reader, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, suffix)
	if k := c.kinds[gvk]; k != nil {
		return k.reader()
	}
	return c.Cache, nil
}

// GetInformer implements [cache.Informers].
func (c *Cache) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	if k := c.kinds[gvk]; k != nil {
		return k, nil
	}
	return c.Cache.GetInformer(ctx, object, opts...)
}

// GetInformerForKind implements [cache.Informers].
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if k := c.kinds[gvk]; k != nil {
		return k, nil
	}
	return c.Cache.GetInformerForKind(ctx, gvk, opts...)
}
