// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// significantDigits is the number of significant digits in a summary. The integer part of a number
// is never shortened.
const significantDigits = 3

// binaryUnits lists the suffixes of byte amounts. Each unit is 1,024 times the previous unit.
var binaryUnits = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}

// Summary formats the utilization of a resource as requested amount, allocatable amount and
// percentage, such as "1.5/8 (18%)" for CPU or "0.586/5.85Gi (10%)" for memory. Both amounts use
// the unit that suits the allocatable amount. Summary returns "" if nothing is allocatable.
func Summary(name corev1.ResourceName, requested, allocatable corev1.ResourceList, percent map[corev1.ResourceName]int32) string {
	p, known := percent[name]
	if !known {
		return ""
	}
	of := number(allocatable[name])
	divisor, suffix := unitOf(name, of)
	return fmt.Sprintf("%s/%s%s (%d%%)", short(number(requested[name])/divisor), short(of/divisor), suffix, p)
}

// Human formats an amount of a resource briefly, such as "98Ti" or "1.5".
func Human(name corev1.ResourceName, amount resource.Quantity) string {
	x := number(amount)
	divisor, suffix := unitOf(name, x)
	return short(x/divisor) + suffix
}

// unitOf returns the divisor and the suffix of the unit that suits an amount of a resource.
func unitOf(name corev1.ResourceName, amount float64) (divisor float64, suffix string) {
	divisor = 1
	if !inBytes(name) {
		return divisor, ""
	}
	for _, unit := range binaryUnits {
		suffix = unit
		if amount/divisor < 1024 {
			break
		}
		divisor *= 1024
	}
	return divisor, suffix
}

// number converts a quantity to an approximate number for display.
func number(q resource.Quantity) float64 { return q.AsApproximateFloat64() }

// short formats a non-negative number with [significantDigits] digits.
func short(x float64) string {
	decimals := significantDigits
	if x >= 1 {
		decimals = max(0, significantDigits-1-int(math.Log10(x)))
	}
	if x > 0 && x < 0.001 {
		return "<0.001"
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
