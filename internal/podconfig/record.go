// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podconfig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ID names a ConfigMap or Secret.
type ID struct {
	Kind            Kind
	Namespace, Name string
}

// Record is what is kept of a ConfigMap or Secret: a hash of the value of each key.
type Record struct {
	ID
	// modified is when the API server last noted a change of any field, in seconds since 1970; 0
	// if it did not.
	modified int64
	version  uint64
	// writer is the field manager that wrote content last, and before the one that did before it,
	// as far as this process has seen; "" if that is not known.
	writer, before string
	// sums has the length of each key, the key, and the hash of its value.
	sums string
}

// sumSize is how many bytes of the hash of a value are kept.
const sumSize = 16

// releaseType is the type of the Secrets in which Helm stores releases. They are many and
// large, and no pod uses them.
const releaseType = "helm.sh/release.v1"

// RecordOf returns the record of a ConfigMap or Secret, and one that is a record already as it
// is. Anything else is an error.
func RecordOf(in any) (*Record, error) {
	switch o := in.(type) {
	case *Record:
		return o, nil
	case *corev1.ConfigMap:
		values := make(map[string][]byte, len(o.Data)+len(o.BinaryData))
		for key, value := range o.Data {
			values[key] = []byte(value)
		}
		maps.Copy(values, o.BinaryData)
		return newRecord(ConfigMap, &o.ObjectMeta, values, func(value []byte) []byte {
			sum := sha256.Sum256(value)
			return sum[:]
		}), nil
	case *corev1.Secret:
		values := o.Data
		if o.Type == releaseType {
			values = nil
		}
		// The UID is random, and known only to those who may read the Secret: without it, no one
		// can try out which value has a hash.
		return newRecord(Secret, &o.ObjectMeta, values, func(value []byte) []byte {
			mac := hmac.New(sha256.New, []byte(o.UID))
			mac.Write(value)
			return mac.Sum(nil)
		}), nil
	default:
		return nil, fmt.Errorf("%T in the cache of ConfigMaps and Secrets", in)
	}
}

func newRecord(kind Kind, meta *metav1.ObjectMeta, values map[string][]byte, hash func([]byte) []byte) *Record {
	r := &Record{
		// The copies release the memory of the whole object.
		ID:      ID{kind, unique.Make(meta.Namespace).Value(), strings.Clone(meta.Name)},
		version: versionOf(meta.ResourceVersion),
	}
	written := int64(-1)
	for i := range meta.ManagedFields {
		fields := &meta.ManagedFields[i]
		if fields.Time == nil || fields.Subresource != "" {
			continue
		}
		at := fields.Time.Unix()
		r.modified = max(r.modified, at)
		if at >= written && ownsContent(fields.FieldsV1) {
			r.writer, written = unique.Make(strings.ToValidUTF8(fields.Manager, "?")).Value(), at
		}
	}
	var sums []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		sums = binary.AppendUvarint(sums, uint64(len(key)))
		sums = append(sums, key...)
		sums = append(sums, hash(values[key])[:sumSize]...)
	}
	r.sums = string(sums)
	return r
}

// ownsContent reports whether a field manager with these fields has written content.
func ownsContent(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(fields.GetRawBytes(), &all) != nil {
		return false
	}
	return all["f:data"] != nil || all["f:binaryData"] != nil
}

// versionOf returns a number for a resourceVersion, which is one already, as a number takes less
// memory. Another one for another version is all that it has to be.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		h := fnv.New64a()
		h.Write([]byte(text))
		return h.Sum64()
	}
	return version
}

// Modified returns when the API server last noted a change of any field; zero if it did not.
func (r *Record) Modified() time.Time {
	if r.modified == 0 {
		return time.Time{}
	}
	return time.Unix(r.modified, 0).UTC()
}

// Follow takes over from the record before it what the object itself does not say. One of the
// same content counts as modified when the earlier one was.
func (r *Record) Follow(earlier *Record) {
	if r.SameContent(earlier) {
		r.modified, r.writer, r.before = earlier.modified, earlier.writer, earlier.before
		return
	}
	r.before = earlier.writer
	if r.before == r.writer {
		r.before = earlier.before
	}
}

// Writers returns the field managers that have written content last, at most two, in the order of
// their names.
func (r *Record) Writers() []string {
	writers := slices.DeleteFunc([]string{r.writer, r.before}, func(w string) bool { return w == "" })
	slices.Sort(writers)
	return slices.Compact(writers)
}

// GetObjectMeta is what an informer needs to know of an object that it stores.
func (r *Record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: strconv.FormatUint(r.version, 10)}
}

// SameContent reports whether two records are of the same content.
func (r *Record) SameContent(other *Record) bool { return r.sums == other.sums }

// each calls a function with each key and the hash of its value, until it returns false.
func (r *Record) each(do func(key, sum string) bool) {
	for rest := r.sums; rest != ""; {
		length, size := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
		end := size + int(length)
		if !do(rest[size:end], rest[end:end+sumSize]) {
			return
		}
		rest = rest[end+sumSize:]
	}
}
