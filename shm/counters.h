/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every counter of the system, in one list.
 *
 * COUNTER(name, role, kind, help)
 *   role  the process that owns it (enum role of proto/role.h without its prefix)
 *   kind  SUM (only grows) or GAUGE
 * `sconce status`, /metrics, the viewer's quality line and exported attributes take their names from
 * here. The values live in the ledger page of the process (shm/ledger.h). Append within a role.
 *
 * The books: for every destination d that is in use,
 *   taken = sum(lost_bpf_*) + sum(lost_sampler_*) + sum(lost_symbolizer_*) + sum(lost_exporter_*)
 *         + d_acked + d_lost_* + d_in_doubt + what still waits (queues, open interval, spool of d).
 * A sample is counted in exactly one of them. in_doubt: a request was on the wire when the exporter
 * died, so nobody knows; it is sent again under the same profile_id.
 */
#ifndef SCONCE_SHM_COUNTERS_H
#define SCONCE_SHM_COUNTERS_H

/* clang-format off */
#define COUNTERS_BPF(COUNTER) /* copied by the sampler from BPF's per-cpu page */ \
	COUNTER(taken, SAMPLER, SUM, "samples taken: runs of the BPF program that passed the filter") \
	COUNTER(lost_bpf_ring_full, SAMPLER, SUM, "samples lost because the ring buffer was full") \
	COUNTER(filtered, SAMPLER, SUM, "runs of the BPF program that the filter turned away")

#define COUNTERS_SAMPLER(COUNTER) \
	COUNTER(sampler_samples, SAMPLER, SUM, "samples read from the ring and handed to a worker") \
	COUNTER(sampler_duplicates, SAMPLER, SUM, "samples seen again after a restart and skipped") \
	COUNTER(sampler_gaps, SAMPLER, SUM, "sequence numbers missing in the ring (equals lost_bpf_ring_full)") \
	COUNTER(lost_sampler_queue_full, SAMPLER, SUM, "samples lost because a worker's queue was full") \
	COUNTER(lost_sampler_bad_record, SAMPLER, SUM, "samples lost because the ring held an impossible record") \
	COUNTER(sideband_records, SAMPLER, SUM, "mmap, fork, comm and exit records read") \
	COUNTER(sideband_lost, SAMPLER, SUM, "side-band records that the kernel dropped; repaired by asking again") \
	COUNTER(processes, SAMPLER, GAUGE, "processes whose address ranges are kept") \
	COUNTER(processes_refused, SAMPLER, SUM, "processes not kept because the table was full") \
	COUNTER(ranges, SAMPLER, GAUGE, "executable address ranges for which room is taken; children share their parents'") \
	COUNTER(ranges_refused, SAMPLER, SUM, "address ranges not kept because the array was full") \
	COUNTER(files, SAMPLER, GAUGE, "mapped files that have an id") \
	COUNTER(files_refused, SAMPLER, SUM, "files without an id because the table was full") \
	COUNTER(introductions, SAMPLER, SUM, "processes told to a worker") \
	COUNTER(introductions_failed, SAMPLER, SUM, "processes not told because the process queue was full") \
	COUNTER(broker_asked, SAMPLER, SUM, "requests sent to the broker") \
	COUNTER(broker_busy, SAMPLER, SUM, "requests not sent because the broker's socket was full; asked again later") \
	COUNTER(tables, SAMPLER, GAUGE, "files with an unwind table in BPF") \
	COUNTER(table_bytes, SAMPLER, GAUGE, "bytes of unwind tables in BPF") \
	COUNTER(chunks, SAMPLER, GAUGE, "chunks of 4 MiB for unwind tables") \
	COUNTER(tables_refused, SAMPLER, SUM, "unwind tables that were not taken: no room, known, or malformed") \
	COUNTER(tables_evicted, SAMPLER, SUM, "unwind tables given up for room") \
	COUNTER(table_room, SAMPLER, GAUGE, "bytes of the chunks that are taken")

#define COUNTERS_BROKER(COUNTER) \
	COUNTER(broker_requests, BROKER, SUM, "requests received") \
	COUNTER(broker_answers, BROKER, SUM, "requests answered, refusals included") \
	COUNTER(broker_processes_gone, BROKER, SUM, "requests about a process that was not there any more") \
	COUNTER(broker_files, BROKER, SUM, "files opened and handed to a worker") \
	COUNTER(broker_files_refused_type, BROKER, SUM, "files refused: not a regular file") \
	COUNTER(broker_files_refused_fs, BROKER, SUM, "files refused: filesystem that may hang") \
	COUNTER(broker_files_refused_identity, BROKER, SUM, "files refused: not the file that was mapped") \
	COUNTER(broker_files_failed, BROKER, SUM, "files that could not be opened") \
	COUNTER(broker_quarantined, BROKER, SUM, "requests refused: the file, device or process has ended or held up us or a worker") \
	COUNTER(broker_others, BROKER, SUM, "debug files and perf maps opened and handed to a worker") \
	COUNTER(broker_others_absent, BROKER, SUM, "requests for a debug file or a perf map that lies at none of its places") \
	COUNTER(broker_memories, BROKER, SUM, "processes with the runtime of a language whose memory was handed to a worker, to read") \
	COUNTER(broker_memories_refused, BROKER, SUM, "requests for the memory of a process that has no runtime we know by its name")

#define COUNTERS_SYMBOLIZER(COUNTER) \
	COUNTER(symbolizer_samples, SYMBOLIZER, SUM, "samples read") \
	COUNTER(symbolizer_symbolized, SYMBOLIZER, SUM, "samples handed to the exporter") \
	COUNTER(lost_symbolizer_queue_full, SYMBOLIZER, SUM, "samples lost because the output queue was full") \
	COUNTER(lost_symbolizer_log_full, SYMBOLIZER, SUM, "samples lost because both definition logs were full") \
	COUNTER(lost_symbolizer_bad_record, SYMBOLIZER, SUM, "samples lost because their record was malformed") \
	COUNTER(lost_symbolizer_poison, SYMBOLIZER, SUM, "samples given up after they ended the worker repeatedly") \
	COUNTER(epochs, SYMBOLIZER, SUM, "definition logs begun") \
	COUNTER(frames_named, SYMBOLIZER, SUM, "frames with a function name") \
	COUNTER(frames_unnamed, SYMBOLIZER, SUM, "frames shown as module and offset") \
	COUNTER(frames_unknown, SYMBOLIZER, SUM, "frames in no known mapping") \
	COUNTER(stop_complete, SYMBOLIZER, SUM, "user stacks that reached the first function") \
	COUNTER(stop_no_user, SYMBOLIZER, SUM, "samples of kernel threads, without a user stack") \
	COUNTER(stop_compat32, SYMBOLIZER, SUM, "samples of 32-bit processes: kernel stack only") \
	COUNTER(stop_deferred, SYMBOLIZER, SUM, "stacks that were to be walked here but could not") \
	COUNTER(stop_no_mapping, SYMBOLIZER, SUM, "stacks cut: return address in no executable range") \
	COUNTER(stop_no_row, SYMBOLIZER, SUM, "stacks cut: no unwind row") \
	COUNTER(stop_bad_row, SYMBOLIZER, SUM, "stacks cut: unwind row that cannot be followed") \
	COUNTER(stop_frame_pointer, SYMBOLIZER, SUM, "stacks cut: frame pointer does not point up the stack") \
	COUNTER(stop_read_fault, SYMBOLIZER, SUM, "stacks cut: user memory could not be read") \
	COUNTER(stop_depth, SYMBOLIZER, SUM, "stacks cut: deeper than is kept") \
	COUNTER(stop_stack_end, SYMBOLIZER, SUM, "stacks cut: beyond the copied part of the stack") \
	COUNTER(stop_remapped, SYMBOLIZER, SUM, "stacks cut: code was replaced just before") \
	COUNTER(walked_outside, SYMBOLIZER, SUM, "stacks walked by the worker from registers and stack bytes") \
	COUNTER(files_open, SYMBOLIZER, GAUGE, "files held open") \
	COUNTER(files_indexed, SYMBOLIZER, SUM, "symbol indexes built") \
	COUNTER(files_bad, SYMBOLIZER, SUM, "files that could not be parsed") \
	COUNTER(symbol_bytes, SYMBOLIZER, GAUGE, "bytes of symbol indexes held") \
	COUNTER(symbol_evictions, SYMBOLIZER, SUM, "symbol indexes given up for room") \
	COUNTER(tables_compiled, SYMBOLIZER, SUM, "unwind tables made from files") \
	COUNTER(tables_borrowed, SYMBOLIZER, SUM, "unwind tables, or the word that there is none, got from other workers") \
	COUNTER(peers_refused, SYMBOLIZER, SUM, "other workers not listened to any more, because they broke the protocol") \
	COUNTER(tables_none, SYMBOLIZER, SUM, "files that say nothing of unwinding; walked by frame pointers") \
	COUNTER(tables_dropped, SYMBOLIZER, SUM, "unwind tables given up for room by a worker") \
	COUNTER(reads_uring, SYMBOLIZER, SUM, "file reads through io_uring: several parts at once") \
	COUNTER(reads_pread, SYMBOLIZER, SUM, "file reads through pread") \
	COUNTER(stop_execve, SYMBOLIZER, SUM, "samples of processes between two programs, without a user stack") \
	COUNTER(processes_known, SYMBOLIZER, GAUGE, "processes that a worker keeps something of") \
	COUNTER(lost_symbolizer_no_time, SYMBOLIZER, SUM, "samples given up at the end because a worker was not done in time") \
	COUNTER(rings, SYMBOLIZER, GAUGE, "workers with an io_uring; others read files by pread alone") \
	COUNTER(files_quarantined, SYMBOLIZER, GAUGE, "files, or whole devices, that a worker is not handed any more") \
	COUNTER(jit_maps, SYMBOLIZER, GAUGE, "perf maps and jitdumps that are read") \
	COUNTER(jit_names, SYMBOLIZER, SUM, "names of code made at run time, as its makers tell them") \
	COUNTER(jit_refused, SYMBOLIZER, SUM, "lines of perf maps, records of jitdumps without meaning or without room") \
	COUNTER(jit_evictions, SYMBOLIZER, SUM, "perf maps and jitdumps given up for room") \
	COUNTER(debug_files, SYMBOLIZER, SUM, "debug files that belong to a mapped one and were found") \
	COUNTER(debug_files_wrong, SYMBOLIZER, SUM, "debug files refused: another build id or checksum than is meant") \
	COUNTER(runtimes, SYMBOLIZER, SUM, "files in which the runtime of a language was found") \
	COUNTER(runtimes_unknown, SYMBOLIZER, SUM, "files with a runtime of which this version or build is not understood") \
	COUNTER(scripts_named, SYMBOLIZER, SUM, "frames of scripts with the name of their function") \
	COUNTER(scripts_unnamed, SYMBOLIZER, SUM, "frames of scripts shown as the name of their language") \
	COUNTER(scripts_read, SYMBOLIZER, SUM, "frames of scripts looked up in the memory of their process") \
	COUNTER(scripts_reads, SYMBOLIZER, SUM, "reads of the memory of processes for that") \
	COUNTER(scripts_read_ns, SYMBOLIZER, SUM, "time that took") \
	COUNTER(scripts_memories, SYMBOLIZER, GAUGE, "processes whose memory a worker may read") \
	COUNTER(lines_too_large, SYMBOLIZER, SUM, "files shown without lines because their packed debug information takes too much of --symbol-memory")

#define COUNTERS_EXPORTER(COUNTER) \
	COUNTER(exporter_samples, EXPORTER, SUM, "samples merged into a batch") \
	COUNTER(lost_exporter_bad_record, EXPORTER, SUM, "samples lost because a worker's record was malformed") \
	COUNTER(lost_exporter_table_full, EXPORTER, SUM, "samples lost because a batch held too many stacks") \
	COUNTER(batches, EXPORTER, SUM, "batches encoded") \
	COUNTER(batch_bytes, EXPORTER, SUM, "bytes of encoded batches, before compression") \
	COUNTER(viewer_acked, EXPORTER, SUM, "samples that the viewer acknowledged") \
	COUNTER(viewer_lost_spool_full, EXPORTER, SUM, "samples lost to the viewer because the spool was full") \
	COUNTER(viewer_lost_rejected, EXPORTER, SUM, "samples that the viewer refused for good") \
	COUNTER(viewer_in_doubt, EXPORTER, SUM, "samples on the wire to the viewer when the exporter died") \
	COUNTER(viewer_retries, EXPORTER, SUM, "requests to the viewer sent again") \
	COUNTER(viewer_waiting, EXPORTER, GAUGE, "samples in the viewer's spool") \
	COUNTER(remote_acked, EXPORTER, SUM, "samples that the remote endpoint acknowledged") \
	COUNTER(remote_lost_spool_full, EXPORTER, SUM, "samples lost to the remote endpoint because the spool was full") \
	COUNTER(remote_lost_rejected, EXPORTER, SUM, "samples that the remote endpoint refused for good") \
	COUNTER(remote_in_doubt, EXPORTER, SUM, "samples on the wire to the remote endpoint when the exporter died") \
	COUNTER(remote_retries, EXPORTER, SUM, "requests to the remote endpoint sent again") \
	COUNTER(remote_waiting, EXPORTER, GAUGE, "samples in the remote endpoint's spool") \
	COUNTER(file_acked, EXPORTER, SUM, "samples written to the file of record") \
	COUNTER(file_lost_spool_full, EXPORTER, SUM, "samples lost to the file because the spool was full") \
	COUNTER(file_lost_rejected, EXPORTER, SUM, "samples lost because the file could not be written") \
	COUNTER(file_in_doubt, EXPORTER, SUM, "always 0: a file is written in one go") \
	COUNTER(file_retries, EXPORTER, SUM, "always 0") \
	COUNTER(file_waiting, EXPORTER, GAUGE, "samples that wait to be written to the file") \
	COUNTER(file_error, EXPORTER, GAUGE, "errno of what kept the file from being written; 0 = nothing did")

#define COUNTERS_VIEWER(COUNTER) \
	COUNTER(intake_requests, VIEWER, SUM, "OTLP requests accepted") \
	COUNTER(intake_refused, VIEWER, SUM, "OTLP requests refused") \
	COUNTER(intake_duplicates, VIEWER, SUM, "profiles that had arrived before and were skipped") \
	COUNTER(intake_samples, VIEWER, SUM, "samples received") \
	COUNTER(intake_first_named_ns, VIEWER, GAUGE, "CLOCK_BOOTTIME of the first sample with a function name") \
	COUNTER(http_requests, VIEWER, SUM, "page and API requests") \
	COUNTER(workloads, VIEWER, GAUGE, "workloads seen") \
	COUNTER(slots, VIEWER, GAUGE, "workloads with an open slot") \
	COUNTER(slots_evicted, VIEWER, SUM, "slots closed for a newer one") \
	COUNTER(slots_expired, VIEWER, SUM, "slots closed because nobody looked") \
	COUNTER(slot_bytes, VIEWER, GAUGE, "bytes held by open slots")

#define COUNTERS(COUNTER) \
	COUNTERS_BPF(COUNTER) COUNTERS_SAMPLER(COUNTER) COUNTERS_BROKER(COUNTER) \
	COUNTERS_SYMBOLIZER(COUNTER) COUNTERS_EXPORTER(COUNTER) COUNTERS_VIEWER(COUNTER)
/* clang-format on */

enum counter_kind { COUNTER_SUM, COUNTER_GAUGE };

enum counter {
#define COUNTER(name, role, kind, help) C_##name,
	COUNTERS(COUNTER)
#undef COUNTER
		COUNTER_COUNT
};

#endif
