// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
	"tidekeeper.dev/tidekeeper/internal/drain"
)

// verifier decodes the API server's responses a second time with client-go's decoder, and compares
// the transformed objects. If an object differs, client-go's object is cached. The methods of a nil
// verifier do nothing.
type verifier struct {
	resource string
	decoder  runtime.Decoder
	// transform is the informer's transform, which is applied before objects are compared.
	transform cache.TransformFunc
	// store converts an object decoded by client-go to the form that the informer stores.
	store func(runtime.Object) (runtime.Object, error)
	// facts hashes the facts about pods, which are also compared. It is nil if the cache keeps no
	// facts.
	facts                 *drain.Hasher
	verified, differences prometheus.Counter
	clock                 clock.PassiveClock
	// logs limits the rate of log messages, because an error in the mask of kept fields makes every
	// object differ.
	logs *rate.Limiter
}

// verify makes the source compare each object with the object that client-go decodes.
func (s *source) verify(scheme *runtime.Scheme, c clock.PassiveClock, m *metrics, store func(runtime.Object) (runtime.Object, error)) {
	s.verifier = &verifier{
		resource: s.resource, decoder: runtime.WithoutVersionDecoder{Decoder: serializer.NewCodecFactory(scheme).UniversalDeserializer()},
		transform: func(object any) (any, error) { return object, nil }, store: store,
		verified: m.verified.WithLabelValues(s.kind), differences: m.differences.WithLabelValues(s.kind),
		clock: c, logs: rate.NewLimiter(rate.Every(time.Minute), 5),
	}
}

// tee returns a reader of body that also copies all data to whole.
func (v *verifier) tee(body io.Reader, whole *bytes.Buffer) io.Reader {
	if v == nil {
		return body
	}
	return io.TeeReader(body, whole)
}

// clone returns a copy of a watch frame. It returns nil for a nil verifier.
func (v *verifier) clone(frame []byte) []byte {
	if v == nil {
		return nil
	}
	return bytes.Clone(frame)
}

// page compares the objects in `read` with the objects that client-go decodes from the page, and
// replaces the objects that differ. If client-go finds a different number of objects,
// resourceVersion or continue token, page returns wire.ErrNotUnderstood, so that client-go handles
// all later requests.
func (v *verifier) page(ctx context.Context, page []byte, version, next string, read []runtime.Object) error {
	if v == nil {
		return nil
	}
	whole, err := runtime.Decode(v.decoder, page)
	if err != nil {
		return v.notUnderstood(ctx, err)
	}
	about, err := meta.ListAccessor(whole)
	if err != nil {
		return v.notUnderstood(ctx, err)
	}
	items, err := meta.ExtractList(whole)
	if err != nil || len(items) != len(read) || about.GetResourceVersion() != version || about.GetContinue() != next {
		return v.notUnderstood(ctx, errors.Join(err, errors.New("client-go reads another list")))
	}
	for i := range read {
		if read[i], err = v.object(ctx, read[i], items[i]); err != nil {
			return err
		}
	}
	return nil
}

// event compares an event's object with the object that client-go decodes, and replaces the object
// if it differs. Bookmarks and errors are not compared, because their objects are not cached.
func (v *verifier) event(ctx context.Context, frame []byte, read watch.Event) (watch.Event, error) {
	if v == nil || read.Type == watch.Bookmark || read.Type == watch.Error {
		return read, nil
	}
	sent := &metav1.WatchEvent{}
	if err := sent.Unmarshal(frame); err != nil {
		return read, v.notUnderstood(ctx, err)
	}
	whole, err := runtime.Decode(v.decoder, sent.Object.Raw)
	if err != nil || sent.Type != string(read.Type) {
		return read, v.notUnderstood(ctx, errors.Join(err, fmt.Errorf("client-go reads an event %q", sent.Type)))
	}
	read.Object, err = v.object(ctx, read.Object, whole)
	return read, err
}

// object compares two versions of an object after the transform: the source has decoded `read`, and
// client-go has decoded `whole`. If they differ, it returns client-go's version.
func (v *verifier) object(ctx context.Context, read, whole runtime.Object) (runtime.Object, error) {
	v.verified.Inc()
	want, err := v.transform(whole.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	var got any
	if r, ok := read.(*record); ok {
		got = r.pod()
	} else if got, err = v.transform(read.DeepCopyObject()); err != nil {
		return nil, err
	}
	sameFacts := v.sameFacts(read, whole)
	if sameFacts && equality.Semantic.DeepEqual(want, got) {
		return read, nil
	}
	about, err := meta.Accessor(whole)
	if err != nil {
		return nil, err
	}
	field := "facts"
	if sameFacts {
		field = differingField(reflect.ValueOf(want), reflect.ValueOf(got))
	}
	v.differs(ctx, "object", klog.KObj(about), "field", field)
	return v.store(whole)
}

// sameFacts reports whether a record's facts equal the facts about the pod as decoded by client-go.
// It returns true for objects that are not pods.
func (v *verifier) sameFacts(read, whole runtime.Object) bool {
	r, ok := read.(*record)
	pod, isPod := whole.(*corev1.Pod)
	return v.facts == nil || !ok || !isPod || r.facts.Equal(v.facts.Facts(pod))
}

// notUnderstood counts a difference that affects an entire response, and returns an error that
// makes client-go handle all later requests.
func (v *verifier) notUnderstood(ctx context.Context, reason error) error {
	v.differs(ctx)
	return wire.NotUnderstood(reason)
}

// differs counts a difference, and logs it with the given keys and values unless the rate limit is
// exceeded.
func (v *verifier) differs(ctx context.Context, about ...any) {
	v.differences.Inc()
	if v.logs.AllowN(v.clock.Now(), 1) {
		klog.FromContext(ctx).Error(nil, "The cache and client-go decode an object differently; the cache uses client-go's", append(about, "resource", v.resource)...)
	}
}

// differingField returns the path of the first field in which two objects differ. The path contains
// no field values.
func differingField(want, got reflect.Value) string {
	if want.Kind() != got.Kind() || want.Kind() == reflect.Pointer && (want.IsNil() || got.IsNil()) {
		return ""
	}
	switch {
	case want.Kind() == reflect.Pointer:
		return differingField(want.Elem(), got.Elem())
	case want.Kind() == reflect.Slice && want.Len() == got.Len():
		for i := range want.Len() {
			if !equality.Semantic.DeepEqual(want.Index(i).Interface(), got.Index(i).Interface()) {
				return fmt.Sprintf("[%d]%s", i, differingField(want.Index(i), got.Index(i)))
			}
		}
	case want.Kind() == reflect.Struct:
		for field, value := range want.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			other := got.FieldByIndex(field.Index)
			if name != "" && !equality.Semantic.DeepEqual(value.Interface(), other.Interface()) {
				return "." + name + differingField(value, other)
			}
		}
	}
	return ""
}

// setTransform sets the informer's transform, which is applied to both objects before they are
// compared.
func (v *verifier) setTransform(transform cache.TransformFunc) {
	if v != nil {
		v.transform = transform
	}
}

// verified wraps an informer whose objects come from s. The wrapper passes the informer's transform
// to the verifier as well.
func (s *source) verified(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	if s.verifier == nil {
		return informer
	}
	return verifiedInformer{informer, s.verifier}
}

// verifiedInformer is an informer that passes its transform to the verifier as well.
type verifiedInformer struct {
	cache.SharedIndexInformer
	verifier *verifier
}

// SetTransform implements [cache.SharedInformer].
func (i verifiedInformer) SetTransform(transform cache.TransformFunc) error {
	i.verifier.setTransform(transform)
	return i.SharedIndexInformer.SetTransform(transform)
}
