// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package readback

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxWait is the maximum time to wait until the cache shows a write. pollInterval is the interval
// at which the cache is read during the wait. The cache usually shows a write within milliseconds;
// while its watch reconnects, this can take half a minute or more.
const (
	maxWait      = 2 * time.Second
	pollInterval = 5 * time.Millisecond
)

// Client is a client whose Get never returns an object that is older than the client's last write
// to the object. List returns the cache's content, which may be older.
type Client struct {
	client.Client
	live   client.Reader
	writes *writes
	clock  clock.Clock
	reads  *prometheus.CounterVec
}

// New returns a client that reads and writes through `inner`. If the cache of `inner` does not show
// a write within maxWait, the client reads the object from `live`, which must not be cached. The
// credentials of `live` need only the right to list the object's kind.
func New(inner client.Client, live client.Reader, registry prometheus.Registerer) (*Client, error) {
	c := &Client{Client: inner, live: live, writes: newWrites(clock.RealClock{}), clock: clock.RealClock{}, reads: newReads()}
	if err := registry.Register(c.reads); err != nil {
		return nil, err
	}
	return c, nil
}

// RegisterMetrics registers this package's metrics without values. It is used to generate
// docs/reference.
func RegisterMetrics(registry prometheus.Registerer) error { return registry.Register(newReads()) }

func newReads() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidekeeper_reads_past_cache_total",
		Help: "Objects that were read from the API server because the cache did not show the manager's last write in time, by kind.",
	}, []string{"kind"})
}

// Get implements [client.Reader].
func (c *Client) Get(ctx context.Context, name client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Errorf("%T: %w", object, err)
	}
	k := key{gvk, name}
	for deadline := c.clock.Now().Add(maxWait); ; {
		err := c.Client.Get(ctx, name, object, opts...)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		shown := object
		if err != nil {
			shown = nil
		}
		last, behind := c.writes.missing(k, shown)
		switch {
		case !behind:
			return err
		case last.late, shown == nil && !last.created, !c.clock.Now().Before(deadline):
			c.writes.setLate(k)
			was := versionOf(shown)
			err := c.readLive(ctx, k, object)
			if err == nil && was == versionOf(object) || apierrors.IsNotFound(err) && shown == nil {
				// The cached object is current: another client's later write has superseded the
				// remembered write.
				c.writes.forget(k)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("read %s %s: %w", gvk.Kind, name, ctx.Err())
		case <-c.clock.After(pollInterval):
		}
	}
}

// versionOf returns the object's UID and resourceVersion. It returns the empty string for nil.
func versionOf(object client.Object) string {
	if object == nil {
		return ""
	}
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// readLive reads an object from the API server. It sends a list request with a field selector
// instead of a get request: a client that watches a kind has the right to list it, but may lack the
// right to get its objects.
func (c *Client) readLive(ctx context.Context, k key, object client.Object) error {
	c.reads.WithLabelValues(k.Kind).Inc()
	ctrl.LoggerFrom(ctx).V(1).Info("The cache does not show the last write yet: reading from the API server", "kind", k.Kind, "object", k.NamespacedName)
	listKind := k.GroupVersionKind
	listKind.Kind += "List"
	list, err := c.newList(listKind, object)
	if err != nil {
		return err
	}
	if err := c.live.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingFields{metav1.ObjectNameField: k.Name}); err != nil {
		return fmt.Errorf("read %s %s past the cache: %w", k.Kind, k.NamespacedName, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("%T: %w", list, err)
	}
	if len(items) != 1 {
		return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: strings.ToLower(k.Kind)}, k.Name)
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(items[0]).Elem())
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return nil
}

// newList returns an empty list of a kind. The list is unstructured if object is unstructured, and
// typed otherwise.
func (c *Client) newList(kind schema.GroupVersionKind, object client.Object) (client.ObjectList, error) {
	if _, ok := object.(*unstructured.Unstructured); ok {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	made, err := c.Scheme().New(kind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list", made)
	}
	return list, nil
}

// Create implements [client.Writer].
func (c *Client) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	err := c.Client.Create(ctx, object, opts...)
	if err == nil {
		c.remember(object, true)
	}
	return err
}

// Update implements [client.Writer].
func (c *Client) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	err := c.Client.Update(ctx, object, opts...)
	if err == nil {
		c.remember(object, false)
	}
	return err
}

// Patch implements [client.Writer].
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := c.Client.Patch(ctx, object, patch, opts...)
	if err == nil {
		c.remember(object, false)
	}
	return err
}

// Apply implements [client.Writer].
func (c *Client) Apply(ctx context.Context, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.Client.Apply(ctx, object, opts...); err != nil {
		return err
	}
	// After the write, object holds the API server's response.
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%T: %w", object, err)
	}
	response := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(text, response); err != nil {
		return fmt.Errorf("%T: %w", object, err)
	}
	c.remember(response, true)
	return nil
}

// Delete implements [client.Writer].
func (c *Client) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	err := c.Client.Delete(ctx, object, opts...)
	if gvk, kindErr := c.GroupVersionKindFor(object); err == nil && kindErr == nil {
		c.writes.add(key{gvk, client.ObjectKeyFromObject(object)}, write{uid: object.GetUID(), gone: true})
	}
	return err
}

// remember records a write together with the resourceVersion in the API server's response.
func (c *Client) remember(response client.Object, created bool) {
	gvk, err := c.GroupVersionKindFor(response)
	if err != nil {
		return
	}
	version, err := strconv.ParseInt(response.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	c.writes.add(key{gvk, client.ObjectKeyFromObject(response)}, write{
		uid: response.GetUID(), version: version, created: created,
		gone: !response.GetDeletionTimestamp().IsZero() && len(response.GetFinalizers()) == 0,
	})
}

// Status implements [client.StatusClient].
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subResource{c.Client.SubResource(name), c}
}

type subResource struct {
	client.SubResourceClient
	client *Client
}

// Update implements [client.SubResourceWriter].
func (s *subResource) Update(ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	err := s.SubResourceClient.Update(ctx, object, opts...)
	if err == nil {
		s.client.remember(object, false)
	}
	return err
}

// Patch implements [client.SubResourceWriter].
func (s *subResource) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	err := s.SubResourceClient.Patch(ctx, object, patch, opts...)
	if err == nil {
		s.client.remember(object, false)
	}
	return err
}
