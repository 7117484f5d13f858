/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp_check.h"

#include "profile/otlp.h"

static bool check_index(int32_t index, size_t n)
{
	return index == 0 || (index > 0 && (size_t)index < n);
}

static bool check_indices(const int32_t *indices, size_t n, size_t table_n)
{
	for (size_t i = 0; i < n; i++)
		if (!check_index(indices[i], table_n))
			return false;
	return true;
}

static bool check_value(const WIRE_COMMON(AnyValue) * value, size_t strings_n)
{
	return !value || value->value_case != WIRE_VALUE(STRING_VALUE_STRINDEX) ||
	       check_index(value->string_value_strindex, strings_n);
}

static bool check_mappings(const WIRE_PROFILES(ProfilesDictionary) * d)
{
	for (size_t i = 0; i < d->n_mapping_table; i++) {
		const WIRE_PROFILES(Mapping) *m = d->mapping_table[i];

		if (!check_index(m->filename_strindex, d->n_string_table) ||
		    !check_indices(m->attribute_indices, m->n_attribute_indices,
				   d->n_attribute_table))
			return false;
	}
	return true;
}

static bool check_locations(const WIRE_PROFILES(ProfilesDictionary) * d)
{
	for (size_t i = 0; i < d->n_location_table; i++) {
		const WIRE_PROFILES(Location) *l = d->location_table[i];

		if (!check_index(l->mapping_index, d->n_mapping_table) ||
		    !check_indices(l->attribute_indices, l->n_attribute_indices,
				   d->n_attribute_table))
			return false;
		for (size_t j = 0; j < l->n_lines; j++)
			if (!check_index(l->lines[j]->function_index, d->n_function_table))
				return false;
	}
	return true;
}

static bool check_dictionary(const WIRE_PROFILES(ProfilesDictionary) * d)
{
	for (size_t i = 0; i < d->n_function_table; i++) {
		const WIRE_PROFILES(Function) *f = d->function_table[i];
		const int32_t texts[] = {f->name_strindex, f->system_name_strindex,
					 f->filename_strindex};

		if (!check_indices(texts, 3, d->n_string_table))
			return false;
	}
	for (size_t i = 0; i < d->n_attribute_table; i++) {
		const WIRE_PROFILES(KeyValueAndUnit) *a = d->attribute_table[i];

		if (!check_index(a->key_strindex, d->n_string_table) ||
		    !check_index(a->unit_strindex, d->n_string_table) ||
		    !check_value(a->value, d->n_string_table))
			return false;
	}
	for (size_t i = 0; i < d->n_stack_table; i++)
		if (!check_indices(d->stack_table[i]->location_indices,
				   d->stack_table[i]->n_location_indices, d->n_location_table))
			return false;
	return check_mappings(d) && check_locations(d);
}

static bool check_type(const WIRE_PROFILES(ValueType) * type, size_t strings_n)
{
	return !type || (check_index(type->type_strindex, strings_n) &&
			 check_index(type->unit_strindex, strings_n));
}

static bool check_profile(const WIRE_PROFILES(ProfilesDictionary) * d,
			  const WIRE_PROFILES(Profile) * p)
{
	if (!check_type(p->sample_type, d->n_string_table) ||
	    !check_type(p->period_type, d->n_string_table) ||
	    (p->profile_id.len && p->profile_id.len != OTLP_PROFILE_ID_BYTES))
		return false;
	for (size_t i = 0; i < p->n_samples; i++) {
		const WIRE_PROFILES(Sample) *s = p->samples[i];

		if (!check_index(s->stack_index, d->n_stack_table) ||
		    !check_index(s->link_index, d->n_link_table) ||
		    !check_indices(s->attribute_indices, s->n_attribute_indices,
				   d->n_attribute_table))
			return false;
	}
	return true;
}

static bool check_resource(const WIRE_PROFILES(ProfilesDictionary) * d,
			   const WIRE_PROFILES(ResourceProfiles) * rp)
{
	for (size_t i = 0; rp->resource && i < rp->resource->n_attributes; i++) {
		const WIRE_COMMON(KeyValue) *kv = rp->resource->attributes[i];

		if (!check_index(kv->key_strindex, d->n_string_table) ||
		    !check_value(kv->value, d->n_string_table))
			return false;
	}
	for (size_t i = 0; i < rp->n_scope_profiles; i++)
		for (size_t j = 0; j < rp->scope_profiles[i]->n_profiles; j++)
			if (!check_profile(d, rp->scope_profiles[i]->profiles[j]))
				return false;
	return true;
}

bool otlp_check(const WIRE_COLLECTOR(ExportProfilesServiceRequest) * request)
{
	if (!request->n_resource_profiles)
		return true;
	if (!request->dictionary || request->n_resource_profiles > OTLP_RESOURCES_MAX ||
	    !check_dictionary(request->dictionary))
		return false;
	for (size_t i = 0; i < request->n_resource_profiles; i++)
		if (!check_resource(request->dictionary, request->resource_profiles[i]))
			return false;
	return true;
}
