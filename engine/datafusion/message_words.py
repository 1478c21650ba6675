"""The words of messages of DataFusion and Arrow, as their libraries hold them. They are shown where
values are withheld."""

from __future__ import annotations

WORDS = frozenset(
    """
    a able about absolute accept accepted accepts access accessing
    according account accumulator across actual adapted additional address advance advanced
    after against aggregate aggregated aggregation algorithm alias aligned alignment all
    allocate allocated allocation allow allowed allowing allows already also alternate
    alternative always amount an anchor and annotate another any appear appears append
    appending applied applies applying approx_distinct approximate arbitrary are arg args
    argument arguments arithmetic array array_element array_slice array_to_string arrays
    arrow as asc ascending ascii assertion at attempt attempted attempting
    attribute available average avg avro backreferences backward bad base base64 based batch
    batches be because been before begin beginning being best better between beyond big
    bin binary bit bitmap_count bits blank block blocks body bool boolean
    both bound boundary bounds bracket branch branches budget buffer buffers bug build
    build_side builder built-in but by byte byte_array bytes bz2 c cache caching calculated
    call called can can't cancelled cannot capacity case cast casting casts catalog caused
    causes ceil certificate change char character characters check child children chunk
    class clause close closed clustered code codec coerce coerce_int coercion collect column
    columns combination combining comma commit common compare comparison comparisons
    compatible compile compiled complex compressed compression compute computed computes
    computing concat concat_ws concatenate concatenated condition config configuration
    conform connection consider considered consists constant constraints construct
    construction contain contained containing contains content content-length context
    continue convention conversion convert converted converting converts copy correct
    correctly corresponding corrupt corrupted cosine could count counting counts crc create
    created creates creation criteria csv current currently custom data data_type database
    dataframe datafusion dataset datatype date date_bin dates datetime day days decimal
    declaration declared decode decoded decodeerror decoding decompressed decrease
    decreasing default defaults deferred define definition delete deleted delimiter delta
    denied depends deregister desc descriptor deserialization deserialize deserialized
    desired dest destination details determine determined dict dictionaries dictionary did
    differences different digit digits dimension dir direction directory disabled disk
    distinct distributed divide divided division dns do does doesn't don't done double
    downcast dropped due duplicate duplicated duration during dynamic each edge effort
    either elapsed element elements empty enabled enclosed encode encoded
    encoding encodings encountered end endian ends enough ensures entered entire entries
    entry enum eof equal equally error errors escape escaped europe evaluate
    evaluated evaluating evaluation even every ex exact exactly example exceed exceeded
    exceeds exception excluded execute executed executes execution exhausted exist existing
    exists expect expected expects explain explicitly exponent expose expr expression
    expressions ext extended extends extension extensions external extra extract
    factorial factory fail failed fails failure false faster feature fetch fetched fetchers
    few field fields file files fill filter filters finalized find finite first fit fixed
    fixed_len_byte_array flag flags flags_array flat flatten float followed
    following footer for form format formats found fourth frame free from full fully
    function functions gap generate generated get given gone
    got granularity greater greatest group grouping grouping_set groups guarantee guard gzip
    had hand happened has hash hasn't have having haystack header here hex hexadecimal
    higher hint histogram host hour how href http https huge id identifier identifiers ids
    idx if ignore ignored illegal immediate implement implementation implemented import in
    include included includes including incompatible inconsistent incorrect increase
    increasing index indexed indicates infer inferred infinite information initial inner input
    inputs insert inserted inserting inserts inside installed instance instead int
    int64array integer integers intended interleave internal intersection interval intervals
    into invalid invariant invocations io is isn't iso it it's item its join joins json just
    kept key keys keyword keyword-only kind known lambda large larger largest last latin1
    lead leading least left len length lengths less level levels lhs like limit limits line
    list listed lists literal literals loaded local located locations log logarithm logical
    long longer look-around lookup lower lz4 make making many map maparray mapped mapping
    mask match matches matching matter max maximum may mean means members memory merge
    merge_into merged message metadata min minimum mins minus minute minutes mismatch
    mismatched missing mixed mode module month more most much multiple multiplied multiply
    must naive name named names namespace nan nanoseconds natural nbytes near nearest
    necessary need needed needs negation negative nested new no node nodes non non-empty
    non-list non-negative non-null non-nullable non-zero not note nothing nth null nullable
    nulls number numbers numeric object occurrence occurrences odd of offset offsets omitted
    on once one only op open opening operand operate operation operations operator operators
    option optional optionally options or order ordering ordering_values ordinal origin
    original os other otherwise out outer output outside over overflow
    overflowed overflowing overhead overlap pad padded padding page pair pairs panic
    panicked parallel parameter parent parentheses parenthesis parquet parse parsed parser
    parsing part partition partitions parts pass passed path paths pattern peer pem per
    percentile perform performing permission permitted physical pipe placeholder places plan
    planner planning plans please plus point points policy polled portion pos position
    positional positions positive posix possible post_join_filter power preceded preceding
    precision predicate prefix prepared prepend present preserved previous previously
    primitive print probability processed produce produced product project projection
    propagate propagated protocol provided put pyarrow pycapsule python pytuple qualified
    qualifiers qualify queries query queue quote quoted raised raises raising random range
    ranges rank read reader reading reads reason receive received reconstruct record
    recordbatch recursion reference refers refused regex regex_array regexp_replace register
    registered regular rejected rel relation released remaining removed removing rename
    renamed repartition repeat repeated repetition replace replaced replaces reported
    represent representable representation represented representing represents request
    requested require required requires reset resolve resolved resource resources response
    rest result resulting results retrieve return returned returning returns reverse
    reversed rewritten rfc right root round rounded rounding rounds row rows rule run
    run_ends runtime same sample samples satisfy scalar scalars scale scan schema schemas
    scheme search searches second seconds see seed seek select selected selector sending
    separated separator sequence sequences serialized service session set sets setting sha
    short shorter should show shuffle side sign signature signed signum simplified since
    single size sizes skip skipped skipping slice sliced small smaller smallest snappy so
    sort sorted source space spaces sparse special specific specification specified
    specifies specify specifying spill spilled split splitting sql square src standard start
    starting starts statement statements statistical statistics status stay step steps stop
    stopping store stored str stream streaming strictly stride string strings strip struct
    structs style subquery subsequent substrait substring substrings subtract successful
    successfully such suffixes suitable sum supplied support supported
    supports symbol symbols syntax system table tables tag take takes target task tempfile
    temporal ten terminator test th than that the their them then there these they third this
    thread three thus time timed timeout times timestamp timestamps timezone tls to to_time
    token too total tracked trailing transform transport treated tree
    tried trim true truncate truncated truncates truncation try trying tuple two type typed
    typemap types udf unable unary unbounded uncache unclosed uncompressed underlying
    unexpected unicode unify union unions unique unit units unix unknown unless unnest unqualified
    unreachable unrecognized unsigned unsupported untagged until unwrap up update upper url
    us usage use used user-defined using usize utc utf utf-16 utf-8 utf8 uuid valid
    validation validity value values varchar variance variant variants verbosity
    verification verifying version very view virtual was way week weight were when where
    whether which while whole whose width wildcard will window with within without word
    words working would write writer writes writing written wrong xml xmlns xz year yet you
    zero zeros zone zstd
    """.split()
)
"""In lower case."""
