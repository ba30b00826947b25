// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
	"tidekeeper.dev/tidekeeper/internal/drain"
)

// scan reads three groups of fields from a pod's protobuf: the fields in which the pods of a
// workload differ, the fields from which the startup summary is computed, and the fields of the
// pod's [drain.Facts]. A scan is reused for successive pods; only its strings remain valid after
// the next pod is read.
type scan struct {
	// name, uid and version are slices of the encoded pod with its name, UID and resourceVersion.
	name, uid, version []byte
	namespace          string
	created            metav1.Time
	deleted            *metav1.Time
	// pod contains only the fields that [KeptPodFields.Summary] reads.
	pod corev1.Pod
	// The fields below hold values to which the field pod points.
	started     metav1.Time
	running     []corev1.ContainerStateRunning
	terminated  []corev1.ContainerStateTerminated
	annotations map[string]string
	// state is the container state that the scan is currently reading.
	state *corev1.ContainerState
	// facts collects the facts that determine whether the pod blocks a drain. It is nil if the
	// cache keeps no facts.
	facts *drain.Builder
	// strings interns strings that occur in many pods, such as namespaces.
	strings map[string]string
}

// ownFields lists the fields that a scan reads and that are not part of a record's shared part. The
// metadata and node fields are stored in the record itself; the summary is computed from the other
// fields.
var ownFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
	"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.annotations", "spec.nodeName",
	"status.conditions", "status.startTime",
	"status.containerStatuses.restartCount", "status.containerStatuses.state", "status.containerStatuses.lastState",
}

// errUnusual is the error for a pod of which a scan would read other values than a decoder.
var errUnusual = errors.New("not a usual pod")

// of reads an encoded pod into s. After an error, the pod must be decoded completely instead.
func (s *scan) of(pod []byte) error {
	*s = scan{
		running: s.running[:0], terminated: s.terminated[:0], annotations: s.annotations, strings: s.strings, facts: s.facts,
		pod: corev1.Pod{
			Spec:   corev1.PodSpec{Containers: s.pod.Spec.Containers[:0]},
			Status: corev1.PodStatus{Conditions: s.pod.Status.Conditions[:0], ContainerStatuses: s.pod.Status.ContainerStatuses[:0]},
		},
	}
	clear(s.annotations)
	if s.facts != nil {
		s.facts.Reset()
	}
	if err := scanPod(s, pod); err != nil {
		return err
	}
	s.pod.CreationTimestamp, s.pod.DeletionTimestamp = s.created, s.deleted
	s.pod.Annotations = s.annotations
	return nil
}

// A scan interns up to maxKnown strings of up to longestKnown bytes each. Most clusters have far
// fewer namespaces, nodes, container names and condition types.
const (
	maxKnown     = 16384
	longestKnown = 128
)

// known converts b to a string. A string of up to longestKnown bytes is interned. When maxKnown
// strings are interned, the table of interned strings is emptied.
func (s *scan) known(b []byte) string {
	if text, ok := s.strings[string(b)]; ok {
		return text
	}
	if len(b) > longestKnown {
		return string(b)
	}
	if s.strings == nil || len(s.strings) >= maxKnown {
		s.strings = map[string]string{}
	}
	text := string(b)
	s.strings[text] = text
	return text
}

// setter is a function that stores the value of an encoded field in the scan.
type setter func(s *scan, value []byte) error

// message returns a setter for a message of the Go type T. The setter reads only the named fields
// of the message.
func message[T any](fields map[string]setter) setter {
	type field struct {
		set  setter
		kind protowire.Type
	}
	var byNumber []field
	for name, set := range fields {
		number, of, err := wire.FieldNamed(name, reflect.TypeFor[T]())
		if err != nil {
			panic(err) // A field name in this file is wrong.
		}
		kind := protowire.BytesType
		if of.Kind() == reflect.Int32 || of.Kind() == reflect.Int64 {
			kind = protowire.VarintType
		}
		if number >= len(byNumber) {
			byNumber = append(byNumber, make([]field, number+1-len(byNumber))...)
		}
		byNumber[number] = field{set, kind}
	}
	return func(s *scan, value []byte) error {
		return wire.EachField(value, func(f wire.Field, value []byte) error {
			if int(f.Number) >= len(byNumber) || byNumber[f.Number].set == nil {
				return nil
			}
			if f.Kind != byNumber[f.Number].kind {
				return fmt.Errorf("%w: the wire type of the field %d", errUnusual, f.Number)
			}
			return byNumber[f.Number].set(s, value)
		})
	}
}

// raw returns a setter that stores the value's bytes without a copy.
func raw(of func(*scan) *[]byte) setter {
	return func(s *scan, value []byte) error {
		*of(s) = value
		return nil
	}
}

// text returns a setter that stores the value as an interned string.
func text[T ~string](of func(*scan) *T) setter {
	return func(s *scan, value []byte) error {
		*of(s) = T(s.known(value))
		return nil
	}
}

// moment returns a setter for a field of type metav1.Time.
func moment(of func(*scan) *metav1.Time) setter {
	return func(s *scan, value []byte) error { return of(s).Unmarshal(value) }
}

// first returns a setter that calls `do` and then, unless `do` fails, calls `set`.
func first(do func(*scan) error, set setter) setter {
	return func(s *scan, value []byte) error {
		if err := do(s); err != nil {
			return err
		}
		return set(s, value)
	}
}

// pointer returns a setter for a message behind a pointer. The message is allocated in the given
// list. The setter fails if the message occurs twice, because a decoder would merge both
// occurrences.
func pointer[T any](to func(*scan) **T, list func(*scan) *[]T, fields map[string]setter) setter {
	return first(func(s *scan) error {
		if *to(s) != nil {
			return errUnusual
		}
		all := list(s)
		*all = append(*all, *new(T))
		*to(s) = last(*all)
		return nil
	}, message[T](fields))
}

func last[T any](list []T) *T { return &list[len(list)-1] }

var scanPod = message[corev1.Pod](map[string]setter{
	"metadata": message[metav1.ObjectMeta](map[string]setter{
		"name":              raw(func(s *scan) *[]byte { return &s.name }),
		"namespace":         text(func(s *scan) *string { return &s.namespace }),
		"uid":               raw(func(s *scan) *[]byte { return &s.uid }),
		"resourceVersion":   raw(func(s *scan) *[]byte { return &s.version }),
		"creationTimestamp": moment(func(s *scan) *metav1.Time { return &s.created }),
		"deletionTimestamp": moment(func(s *scan) *metav1.Time {
			s.deleted = &metav1.Time{}
			return s.deleted
		}),
		"annotations": scanAnnotation,
		"labels":      scanLabel,
		"finalizers":  scanFinalizer,
	}),
	"spec": message[corev1.PodSpec](map[string]setter{
		"nodeName":                      text(func(s *scan) *string { return &s.pod.Spec.NodeName }),
		"terminationGracePeriodSeconds": scanGrace,
		"volumes":                       scanVolume,
		"containers": first(func(s *scan) error {
			s.pod.Spec.Containers = append(s.pod.Spec.Containers, corev1.Container{})
			return nil
		}, message[corev1.Container](map[string]setter{
			"name": text(func(s *scan) *string { return &last(s.pod.Spec.Containers).Name }),
		})),
	}),
	"status": message[corev1.PodStatus](map[string]setter{
		"phase": text(func(s *scan) *corev1.PodPhase { return &s.pod.Status.Phase }),
		"startTime": moment(func(s *scan) *metav1.Time {
			s.pod.Status.StartTime = &s.started
			return &s.started
		}),
		"conditions": first(func(s *scan) error {
			s.pod.Status.Conditions = append(s.pod.Status.Conditions, corev1.PodCondition{})
			return nil
		}, message[corev1.PodCondition](map[string]setter{
			"type":               text(func(s *scan) *corev1.PodConditionType { return &last(s.pod.Status.Conditions).Type }),
			"status":             text(func(s *scan) *corev1.ConditionStatus { return &last(s.pod.Status.Conditions).Status }),
			"lastTransitionTime": moment(func(s *scan) *metav1.Time { return &last(s.pod.Status.Conditions).LastTransitionTime }),
		})),
		"containerStatuses": first(func(s *scan) error {
			s.pod.Status.ContainerStatuses = append(s.pod.Status.ContainerStatuses, corev1.ContainerStatus{})
			return nil
		}, message[corev1.ContainerStatus](map[string]setter{
			"name": text(func(s *scan) *string { return &last(s.pod.Status.ContainerStatuses).Name }),
			"restartCount": func(s *scan, value []byte) error {
				count, n := protowire.ConsumeVarint(value)
				last(s.pod.Status.ContainerStatuses).RestartCount = int32(count)
				return protowire.ParseError(n)
			},
			"state": first(func(s *scan) error {
				s.state = &last(s.pod.Status.ContainerStatuses).State
				return nil
			}, scanState),
			"lastState": first(func(s *scan) error {
				s.state = &last(s.pod.Status.ContainerStatuses).LastTerminationState
				return nil
			}, scanState),
		})),
	}),
})

var scanState = message[corev1.ContainerState](map[string]setter{
	"running": pointer(
		func(s *scan) **corev1.ContainerStateRunning { return &s.state.Running },
		func(s *scan) *[]corev1.ContainerStateRunning { return &s.running },
		map[string]setter{"startedAt": moment(func(s *scan) *metav1.Time { return &s.state.Running.StartedAt })}),
	"terminated": pointer(
		func(s *scan) **corev1.ContainerStateTerminated { return &s.state.Terminated },
		func(s *scan) *[]corev1.ContainerStateTerminated { return &s.terminated },
		map[string]setter{"startedAt": moment(func(s *scan) *metav1.Time { return &s.state.Terminated.StartedAt })}),
})

// scanAnnotation reads a map entry with an annotation's key and value.
func scanAnnotation(s *scan, entry []byte) error {
	key, value, err := mapEntry(entry)
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	s.annotations[s.known(key)] = s.known(value)
	return err
}

// mapEntry returns the key and the value of an encoded map entry.
func mapEntry(entry []byte) (key, value []byte, err error) {
	err = wire.EachField(entry, func(f wire.Field, of []byte) error {
		switch {
		case f.Kind != protowire.BytesType:
			return errUnusual
		case f.Number == 1:
			key = of
		case f.Number == 2:
			value = of
		}
		return nil
	})
	return key, value, err
}
