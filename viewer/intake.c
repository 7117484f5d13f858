/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <zlib.h>

#include "viewer/viewer.h"

#define CHAINS		   32768 /* a power of two */
#define UNPACK_FIRST_BYTES (256u << 10)

/* The last ids, oldest overwritten first; chained by hash. */
struct intake_ids {
	uint64_t n;
	uint64_t seed;		/* senders choose the ids, so they must not choose the chains */
	uint16_t chain[CHAINS]; /* index + 1 */
	struct {
		uint8_t id[OTLP_PROFILE_ID_BYTES];
		uint16_t next;
	} entry[INTAKE_IDS_MAX];
};

int intake_init(struct intake *intake)
{
	intake->ids = calloc(1, sizeof(*intake->ids));
	intake->staging = profile_new(INTAKE_STAGING_BYTES);
	if (!intake->ids || !intake->staging) {
		intake_fini(intake);
		return -ENOMEM;
	}
	if (getrandom(&intake->ids->seed, sizeof(intake->ids->seed), 0) < 0)
		return -errno;
	return 0;
}

void intake_fini(struct intake *intake)
{
	profile_free(intake->staging);
	free(intake->ids);
	*intake = (struct intake){0};
}

/* ---- duplicates --------------------------------------------------------------------------- */

static uint32_t ids_hash(const struct intake_ids *ids, const uint8_t *id)
{
	uint64_t half[2];

	memcpy(half, id, sizeof(half));
	half[0] = (half[0] ^ ids->seed) * 0x9e3779b97f4a7c15ull;
	half[0] ^= half[0] >> 29;
	half[0] = (half[0] ^ half[1] ^ ids->seed >> 32) * 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(half[0] >> 40) & (CHAINS - 1);
}

static uint16_t *ids_link(struct intake_ids *ids, const uint8_t *id)
{
	uint16_t *link = &ids->chain[ids_hash(ids, id)];

	while (*link && memcmp(ids->entry[*link - 1].id, id, OTLP_PROFILE_ID_BYTES))
		link = &ids->entry[*link - 1].next;
	return link;
}

static bool intake_seen(void *arg, const uint8_t id[OTLP_PROFILE_ID_BYTES])
{
	struct intake_ids *ids = ((struct viewer *)arg)->intake.ids;
	size_t index = ids->n % INTAKE_IDS_MAX;
	uint16_t *link;

	if (*ids_link(ids, id))
		return true;
	if (ids->n++ >= INTAKE_IDS_MAX) {
		link = ids_link(ids, ids->entry[index].id);
		*link = ids->entry[index].next;
	}
	memcpy(ids->entry[index].id, id, OTLP_PROFILE_ID_BYTES);
	ids->entry[index].next = 0;
	*ids_link(ids, id) = (uint16_t)(index + 1);
	return false;
}

/* ---- samples ------------------------------------------------------------------------------ */

static void intake_tally(void *arg, const struct otlp_attribute *attributes, size_t n,
			 uint64_t samples, uint64_t cpu_ns)
{
	struct viewer *viewer = arg;
	char key[WORKLOAD_KEY_BYTES];

	workload_key(attributes, n, key);
	workloads_seen(viewer->workloads, key, samples, cpu_ns, child_now_ns());
}

/* Samples are taken only when somebody looks. */
static struct profile *intake_target(void *arg, const struct otlp_attribute *attributes, size_t n,
				     uint64_t samples)
{
	struct viewer *viewer = arg;
	char key[WORKLOAD_KEY_BYTES];

	(void)samples;
	workload_key(attributes, n, key);
	return slots_find(&viewer->slots, key) ? viewer->intake.staging : NULL;
}

static struct slot *intake_slot_of(struct viewer *viewer, uint32_t resource)
{
	struct otlp_attribute attributes[PROFILE_ATTRIBUTES_MAX];
	const struct profile *staging = viewer->intake.staging;
	const struct profile_attribute *from;
	char key[WORKLOAD_KEY_BYTES];
	size_t n;

	from = profile_resource_at(staging, resource, &n);
	for (size_t i = 0; i < n; i++)
		attributes[i] = (struct otlp_attribute){profile_text(staging, from[i].key),
							profile_text(staging, from[i].value)};
	workload_key(attributes, n, key);
	return slots_find(&viewer->slots, key);
}

/* Slot by slot, so that the translation of locations serves all samples of a slot. */
static void intake_deliver(struct viewer *viewer, struct copy *copy, struct slot *const *slot_of)
{
	const struct profile *staging = viewer->intake.staging;
	uint64_t now_ns = child_now_ns(), count;

	for (struct slot *slot = viewer->slots.first; slot; slot = slot->next)
		for (uint32_t id = 1; id <= profile_samples_n(staging); id++)
			if (slot_of[profile_sample_at(staging, id, &count)->resource] == slot)
				slot_add(&viewer->slots, slot, copy, id, now_ns);
}

static void intake_fill_slots(struct viewer *viewer)
{
	struct profile *staging = viewer->intake.staging;
	uint32_t resources = profile_resources_n(staging);
	struct slot **slot_of;
	struct copy copy;

	if (!profile_samples_n(staging))
		return;
	slot_of = calloc(resources + 1, sizeof(struct slot *));
	if (slot_of && !copy_init(&copy, staging)) {
		for (uint32_t id = 0; id <= resources; id++)
			slot_of[id] = intake_slot_of(viewer, id);
		intake_deliver(viewer, &copy, slot_of);
		copy_fini(&copy);
	}
	free(slot_of);
	profile_clear(staging);
}

static void intake_count(struct viewer *viewer, const struct otlp_result *result)
{
	struct ledger_writer *ledger = &viewer->child.ledger;

	ledger_add(ledger, C_intake_samples, result->samples);
	ledger_add(ledger, C_intake_duplicates, result->profiles_duplicate);
	if (result->samples_named && !ledger->now.counter[C_intake_first_named_ns])
		ledger_set(ledger, C_intake_first_named_ns, child_now_ns());
}

static int intake_take(struct viewer *viewer, const void *bytes, size_t len)
{
	const struct otlp_sink sink = {
	    .arg = viewer,
	    .seen = intake_seen,
	    .tally = intake_tally,
	    .target = intake_target,
	    .memory_bytes = INTAKE_DECODE_BYTES,
	};
	struct otlp_result result = {0};
	int err = otlp_decode(bytes, len, &sink, &result);

	intake_fill_slots(viewer);
	if (!err)
		intake_count(viewer, &result);
	return err;
}

/* ---- bodies ------------------------------------------------------------------------------- */

static int unpack_grow(struct text *to)
{
	size_t capacity = to->capacity ? to->capacity * 2 : UNPACK_FIRST_BYTES;
	char *data;

	if (to->len < to->capacity)
		return 0;
	if (capacity > to->limit)
		return -E2BIG;
	data = realloc(to->data, capacity);
	if (!data)
		return -ENOMEM;
	to->data = data;
	to->capacity = capacity;
	return 0;
}

/* Members of a gzip file may follow each other. Trailing rubbish is an error. */
static int unpack_stream(z_stream *z, struct text *to)
{
	int err, ret;

	for (;;) {
		err = unpack_grow(to);
		if (err)
			return err;
		z->next_out = (Bytef *)to->data + to->len;
		z->avail_out = (uInt)(to->capacity - to->len);
		ret = inflate(z, Z_NO_FLUSH);
		to->len = to->capacity - z->avail_out;
		if (ret == Z_STREAM_END) {
			if (!z->avail_in)
				return 0;
			ret = inflateReset(z);
		}
		/* Z_BUF_ERROR: no progress, the input ends too early */
		if (ret != Z_OK)
			return ret == Z_MEM_ERROR ? -ENOMEM : -EPROTO;
	}
}

static int unpack_gzip(const void *bytes, size_t len, struct text *to)
{
	z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)len};
	int err;

	/* + 16: gzip, and nothing else */
	if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
		return -ENOMEM;
	err = unpack_stream(&z, to);
	inflateEnd(&z);
	return err;
}

static int intake_body(struct viewer *viewer, const struct http_request *request, bool gzip)
{
	struct text unpacked;
	int err;

	if (!gzip)
		return intake_take(viewer, request->body, request->body_len);
	text_init(&unpacked, INTAKE_UNPACKED_BYTES);
	err = unpack_gzip(request->body, request->body_len, &unpacked);
	if (!err)
		err = intake_take(viewer, unpacked.data, unpacked.len);
	text_fini(&unpacked);
	return err;
}

static bool intake_is_protobuf(const char *type)
{
	static const char wanted[] = "application/x-protobuf";

	return type && !strncasecmp(type, wanted, sizeof(wanted) - 1) &&
	       strchr("; \t", type[sizeof(wanted) - 1]);
}

void intake_post(void *context, const struct http_request *request, struct http_reply *reply)
{
	const char *encoding = http_header(request, "Content-Encoding");
	bool gzip = encoding && !strcasecmp(encoding, "gzip");
	uint8_t response[64];
	int err;

	if (!intake_is_protobuf(http_header(request, "Content-Type"))) {
		http_error(reply, 415, "only application/x-protobuf is read here");
		return;
	}
	if (encoding && !gzip && strcasecmp(encoding, "identity")) {
		http_error(reply, 415, "only gzip or no compression is read here");
		return;
	}
	err = intake_body(context, request, gzip);
	switch (err) {
	case 0:
		reply->type = "application/x-protobuf";
		/* "" = with an empty partial_success, as the Collector answers */
		text_add(&reply->body, response,
			 otlp_encode_response(0, "", response, sizeof(response)));
		break;
	case -E2BIG:
	case -ENOMEM:
		http_error(reply, 413, "too large when unpacked");
		break;
	default:
		http_error(reply, 400, "not an ExportProfilesServiceRequest of OTLP 1.10 or later");
	}
}
